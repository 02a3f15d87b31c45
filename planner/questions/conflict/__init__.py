"""Explain an infeasible fleet: the requirements in conflict, and the smallest changes that resolve it."""
