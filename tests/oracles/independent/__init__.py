"""A second formulation of the planning problem, written from the documentation, and fleets to compare it on.

In: a fleet file with engine tables. Out: the least cost and the unmet demand, proven by HiGHS.
`reading` turns the file into `facts`, `money` prices supply, `formulation` states the program, `answer`
solves it, `worker` runs it in a process of its own (highspy and OR-Tools cannot share one), `fleets` takes
fleets of the fuzzer (tests/fuzz) that have no other keys, `compare` sets the planner's plan beside the
answer, and `soak` does so for many seeds. Of these `planned` and `fleets` alone import fleetplan.
"""
