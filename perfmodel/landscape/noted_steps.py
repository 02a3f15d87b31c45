"""Steps that were evaluated over a cross product, and the details of some of its rows that follow from them.

The sources of a row are computed for the few usable rows. Their operators were looked up with all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.evaluator.step import PendingStep
from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.steps import StepShape, StepTimes
from fleetplan.perfmodel.steps.folding import Places
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups
from fleetplan.perfmodel.steps.times import alike_named
from fleetplan.perfmodel.techniques.chunked_prefill import StepsEvaluator


@dataclass(frozen=True, slots=True)
class NotedSteps:
    """Steps of a block, in the order of its phase.

    Attributes
    ----------
    evaluator : Evaluator
        Evaluator.
    layouts, batches : IntArray
        Positions of those that are evaluated among those of the block.
    """

    evaluator: Evaluator
    layouts: IntArray
    batches: IntArray
    _asked: list[PendingStep] = field(default_factory=list)

    def ask(self, shapes: Sequence[StepShape], lookups: SharedLookups) -> None:
        """Queue the operators of steps over the cross product of the block for look-up."""
        self._asked.extend(self.evaluator.asked_step(shape, lookups) for shape in shapes)

    def evaluated(self, shapes: Sequence[StepShape]) -> list[StepTimes]:
        """Return the times of the queued steps."""
        return [self.evaluator.time_of(asked) for asked, _ in zip(self._asked, shapes, strict=True)]

    def details(self, places: Places) -> StepsEvaluator | None:
        """Return a function for the detailed steps of some rows, in the same order; None if not possible.

        Parameters
        ----------
        places : Places
            Positions of the rows along the axes of the block.
        """
        noted = [asked.crossed for asked in self._asked if asked.crossed is not None]
        if len(noted) < max(1, len(self._asked)):
            return None
        in_order = iter(noted)
        at = (np.searchsorted(self.layouts, places[0]), np.searchsorted(self.batches, places[1]), places[2])

        def evaluate(shapes: Sequence[StepShape]) -> list[StepTimes]:
            return alike_named([self.evaluator.detail(shape, next(in_order), at) for shape in shapes])

        return evaluate
