"""`python -m fleetplan.planner` is `plan`."""

from fleetplan.planner.start import main

main()
