"""Operator times: measured tables, their interpolation, and the roofline where nothing was measured."""
