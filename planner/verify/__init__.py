"""Verify a plan against its fleet without the solver, in unrounded numbers.

Every constraint family and cost term is recomputed from the placements and purchases in the plan.
Verification runs on every plan before output.
"""

from fleetplan.planner.verify.evidence import Evidence
from fleetplan.planner.verify.packing import fits
from fleetplan.planner.verify.whole_plan import PlanError, require_valid, verify

__all__ = ["Evidence", "PlanError", "fits", "require_valid", "verify"]
