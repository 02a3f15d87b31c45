"""`python -m fleetplan.planner` is `plan`."""

from fleetplan.planner.cli import main

main()
