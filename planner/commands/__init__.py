"""The commands of the command line, each between its options and the rooms that do the work."""
