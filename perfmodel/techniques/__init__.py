"""Serving techniques: what each changes in a step, in memory, or in how prompts are batched.

In: a step without a technique. Out: the step with it. Each technique is one `Technique` record in a separate
module, and `registry.TECHNIQUES` lists them. `technique_problem` explains why a model or a framework cannot
use one. `evaluator` applies them.
"""

from fleetplan.perfmodel.techniques.record import Technique, TechniqueColumn, TechniqueStep
from fleetplan.perfmodel.techniques.registry import TECHNIQUES, technique_problem

__all__ = ["TECHNIQUES", "Technique", "TechniqueColumn", "TechniqueStep", "technique_problem"]
