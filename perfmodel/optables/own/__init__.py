"""Operator tables of users: formats and storage."""
