"""Decides, proves, explains and reports; holds the command line."""
