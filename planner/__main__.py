"""`python -m fleetplan.planner` runs `plan`."""

from fleetplan.planner.start import main

main()
