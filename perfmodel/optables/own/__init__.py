"""Operator tables of users: formats that are read, and where they are kept."""
