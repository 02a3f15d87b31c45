"""Explain why an item is not in a plan: the reason, its cost, and the changes that would include it."""
