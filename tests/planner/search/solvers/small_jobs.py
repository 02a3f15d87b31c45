"""Jobs that are soon done."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.solvers.highs_jobs import Effort, Job, Rows


def at_least(limit: float) -> Rows:
    """One whole variable that is no less than a limit."""
    return Rows(
        sp.csr_array(np.ones((1, 1))),
        np.array([limit]),
        np.array([np.inf]),
        np.zeros(1),
        np.full(1, 99.0),
        np.ones(1, dtype=bool),
    )


def jobs(*lengths: float) -> list[Job]:
    cost, effort = np.ones(1), Effort(None, 100, 0.0)
    return [Job(at_least(each + 0.5), cost, effort, length=length) for each, length in enumerate(lengths)]
