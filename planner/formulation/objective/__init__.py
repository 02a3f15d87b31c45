"""Objectives: TCO and its parts, unmet demand, and goals that come before TCO."""
