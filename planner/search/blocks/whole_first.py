"""Models of one period, solved whole first and in blocks in the time that is left.

Cuts of HiGHS on the whole model raise the bound where prices of blocks gain little. The least energy of a
fleet of twelve services below a cap on TCO (4,790 variables) has a gap of 0.7 % after 1.8 s of a core, and of
2.4 % in blocks at a limit of 18 s. Models of several periods have too much to cut: quarterly-year.yaml (5,578
variables) has a gap of 2.0 % after 22 s of a core, and of 0.5 % in blocks.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from fleetplan.planner.formulation import PlanningModel
from fleetplan.planner.search.blocks.request import WarmStart
from fleetplan.planner.search.blocks.solve import solve_in_blocks, with_known_bound
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.cpsat import hint
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import HIGHS, Proof
from fleetplan.planner.search.solvers.race import LEAST_SEARCH_S, solve_model
from fleetplan.planner.search.solvers.reproducible import solve_reproducibly
from fleetplan.planner.search.solvers.request import (
    Enough,
    Listener,
    ModelOutcome,
    ModelStatus,
    Patience,
    SolverLimits,
    Step,
)

FEWEST_VARIABLES: Final = 3000
MOST_VARIABLES: Final = 6000
"""Sizes of models that are solved whole at first; larger ones have not been measured."""

WHOLE_SHARE_OF_TIME: Final = 0.5
WHOLE_LIMIT_S: Final = 10.0
"""Most of the time for the whole model. [s, or solver units]"""

STALLED_S: Final = 3.0
"""Time without progress after which blocks go on: HiGHS's bound of the least energy below a cap on TCO is
final after 1 s of a core, and blocks find the plan that is missing. [s]"""

PROGRESS_RATIO: Final = 0.02
"""Share of the gap by which it shrinks at least in that time."""

POLL_S: Final = 0.1
"""Interval to check for that. [s]"""


def worth_solving_whole(planning: PlanningModel) -> bool:
    """Whether a model is solved whole before blocks."""
    n_variables = len(planning.model.proto.variables)
    return len(planning.problem.periods) == 1 and FEWEST_VARIABLES <= n_variables < MOST_VARIABLES


def solve_whole_first(
    planning: PlanningModel,
    parts: Split,
    limits: SolverLimits,
    enough: Enough,
    on_step: Listener,
    reproducible: bool = False,
    warm_start: WarmStart | None = None,
) -> ModelOutcome:
    """Minimise a model, whole in a part of the time; parameters and result as those of `solve_in_blocks`.

    Blocks begin with the plan of the whole and know its bound, which is one of the same model.
    """
    began = time.monotonic()
    seconds = min(WHOLE_SHARE_OF_TIME * limits.time_limit_s, WHOLE_LIMIT_S)
    # Without a plan blocks go on: no time of grace for a first one.
    patience = Patience(seconds=min(seconds, limits.patience.seconds))
    whole_limits = replace(limits, time_limit_s=seconds, patience=patience, extra_time=None)
    model, continuous = planning.model, planning.continuous
    if reproducible:
        whole = solve_reproducibly(model, continuous, whole_limits, enough)
    else:
        with _until_it_stalls(limits.stop, on_step) as (stop, listener):
            whole = solve_model(model, continuous, replace(whole_limits, stop=stop), enough, listener)
    stopped = limits.stop.requested and whole.values is not None
    if stopped or whole.status in (ModelStatus.SOLVED, ModelStatus.INFEASIBLE):
        return whole
    known = Proof(-math.inf if whole.bound is None else whole.bound, whole.bound_source)
    if whole.values is not None:
        hint(model, whole.values)
    spent = whole.deterministic_time if reproducible else time.monotonic() - began

    def near_enough(objective: float, bound: float) -> bool:
        return enough(objective, max(bound, known.bound))

    def tell(step: Step) -> None:
        bound = known.bound if step.bound is None else max(step.bound, known.bound)
        on_step(replace(step, bound=bound))

    block_limits = replace(limits, time_limit_s=max(limits.time_limit_s - spent, LEAST_SEARCH_S))
    found = solve_in_blocks(planning, parts, block_limits, near_enough, tell, reproducible, warm_start)
    found = replace(found, deterministic_time=found.deterministic_time + whole.deterministic_time)
    if found.values is None:
        return whole if whole.values is not None else found
    found = with_known_bound(found, known, on_step)
    solved = found.objective is not None and found.bound is not None and enough(found.objective, found.bound)
    return replace(found, status=ModelStatus.SOLVED) if solved else found


@contextmanager
def _until_it_stalls(stop: Stop, on_step: Listener) -> Iterator[tuple[Stop, Listener]]:
    """Yield a stop that is requested with the given one, or once the gap no longer shrinks; and its listener.

    The gap is watched from the first bound of HiGHS on.
    """
    own, over = Stop(), threading.Event()
    smallest, since = math.inf, math.inf

    def listen(step: Step) -> None:
        nonlocal smallest, since
        on_step(step)
        if step.objective is None or step.bound is None or (since == math.inf and step.source != HIGHS):
            return
        gap = step.objective - step.bound
        if gap <= smallest * (1 - PROGRESS_RATIO):
            smallest, since = gap, time.monotonic()

    def look() -> None:
        while not over.wait(POLL_S):
            if stop.requested or time.monotonic() - since > STALLED_S:
                own.request()
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield own, listen
    finally:
        over.set()
        thread.join()
