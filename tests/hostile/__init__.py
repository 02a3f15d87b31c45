"""Files that somebody wrote to break the reader, and names that were chosen to break the writer."""
