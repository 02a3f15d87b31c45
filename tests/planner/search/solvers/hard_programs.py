"""Programs that branch and bound takes long to close."""

from __future__ import annotations

import random

from ortools.sat.python import cp_model

LIMIT_S = 60.0


def market_split(forgiving: bool) -> cp_model.CpModel:
    """A program of a kind that branch and bound takes for ever to close.

    Without a solution where every row must be met; forgiving, it counts by how much they are missed.
    """
    drawn = random.Random(1)
    model = cp_model.CpModel()
    share = [model.new_bool_var(f"x{j}") for j in range(40)]
    missed = []
    for row in range(5):
        weights = [drawn.randrange(100) for _ in share]
        more, less = (model.new_int_var(0, sum(weights) if forgiving else 0, f"{row}") for _ in range(2))
        model.add(cp_model.LinearExpr.weighted_sum(share, weights) + more - less == sum(weights) // 2)
        missed += [more, less]
    model.minimize(sum(missed))
    return model
