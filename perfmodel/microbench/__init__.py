"""Operator microbenchmarks: a machine with an accelerator becomes a table for the planner.

`device` says what runs and how time is taken, `kernels` what an operator is in torch, `sites` what is worth
measuring, `adaptive` what to measure next, `journal` what was measured already, `session` ties them together.
Only `device`, `kernels`, `ranks`, `figures` and `reference` import torch (the extra `microbench`).
"""
