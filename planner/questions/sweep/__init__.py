"""Sweep a grid of values: plan the fleet at every point, resumable after an interrupt."""
