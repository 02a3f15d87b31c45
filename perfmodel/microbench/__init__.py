"""Operator microbenchmarks: a machine with an accelerator becomes a table for the planner.

`device` and `gpu` say what runs and how time is taken, `operands` what is read, `kernels` what an operator is
in torch, `timing` when a time is known, `control` whether the machine was slow meanwhile, `sites` what is
worth measuring, `adaptive` what to measure next, `journal` what was measured already; `session` ties them
together. torch (the extra `microbench`) is needed by `device`, `gpu`, `operands`, `kernels`, `layer_parts`,
`single`, `ranks`, `figures` and `reference` alone.
"""
