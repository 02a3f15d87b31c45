"""Commands of the command line: each reads its options and calls the packages that do the work."""
