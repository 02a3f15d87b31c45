"""Hostile input: files that try to break readers, and names that try to break writers."""
