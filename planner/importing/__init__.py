"""Files that other tools write, read into tables of ours: the only place where units are converted."""
