"""A fleet planned over a grid of values: every point once, in one table, also after an interrupt."""
