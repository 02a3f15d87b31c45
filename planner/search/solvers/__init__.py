"""One model solved: CP-SAT beside HiGHS, reproducibly, stopped by Ctrl-C."""
