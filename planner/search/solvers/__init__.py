"""Solvers of one model: CP-SAT and HiGHS in parallel, or reproducibly; Ctrl-C stops them."""
