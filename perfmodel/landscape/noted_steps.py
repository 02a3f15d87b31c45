"""Steps that were evaluated over a cross product, and the details of some of its rows that follow from them.

What a row rests on is asked of the few that are usable. Their operators were looked up with all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.steps import StepShape, StepTimes
from fleetplan.perfmodel.steps.grid_latency import CrossedStep, Places
from fleetplan.perfmodel.steps.times import alike_named
from fleetplan.perfmodel.techniques.chunked_prefill import StepsEvaluator


@dataclass(frozen=True, slots=True)
class NotedSteps:
    """The steps of a block in the order in which a phase asked for them.

    Attributes
    ----------
    evaluator : Evaluator
        What evaluates them.
    layouts, batches : IntArray
        Positions of those that were evaluated among those of the block.
    """

    evaluator: Evaluator
    layouts: IntArray
    batches: IntArray
    _crossed: list[CrossedStep | None] = field(default_factory=list)

    def evaluated(self, shapes: Sequence[StepShape]) -> list[StepTimes]:
        """Evaluate steps over the cross product of the block, and note them."""
        found = [self.evaluator.noted_step(shape) for shape in shapes]
        self._crossed.extend(crossed for _, crossed in found)
        return [times for times, _ in found]

    def details(self, places: Places) -> StepsEvaluator | None:
        """Return what gives the steps of some rows in detail, asked for in the same order; None if it cannot.

        Parameters
        ----------
        places : Places
            Positions of the rows along the axes of the block.
        """
        noted = [crossed for crossed in self._crossed if crossed is not None]
        if len(noted) < max(1, len(self._crossed)):
            return None
        in_order = iter(noted)
        at = (np.searchsorted(self.layouts, places[0]), np.searchsorted(self.batches, places[1]), places[2])

        def evaluate(shapes: Sequence[StepShape]) -> list[StepTimes]:
            return alike_named([self.evaluator.detail(shape, next(in_order), at) for shape in shapes])

        return evaluate
