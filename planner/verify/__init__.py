"""Checks a plan against its fleet without the solver, in unrounded numbers.

Every constraint family and every cost term is computed again from the placements and purchases that the
plan states. It runs on every plan before anything is printed.
"""

from fleetplan.planner.verify.evidence import Evidence
from fleetplan.planner.verify.packing import fits
from fleetplan.planner.verify.whole_plan import PlanError, require_valid, verify

__all__ = ["Evidence", "PlanError", "fits", "require_valid", "verify"]
