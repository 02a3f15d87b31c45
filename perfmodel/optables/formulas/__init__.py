"""Times without a table: roofline, collectives, small kernels."""
