"""HiGHS in a process of its own: reads a mixed-integer program from stdin, writes what it finds to stdout.

It runs apart because scipy's HiGHS holds the interpreter and cannot be stopped, and it answers in rounds of
growing length, so that whoever asked has a plan and a bound early. No fleetplan module is imported.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import time
from typing import IO

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

FIRST_ROUND_S = 4.0
ROUND_GROWTH = 3.0
"""A round three times as long as the one before spends at most half of the time on repetition."""


def main(source: IO[bytes], target: IO[str], first_round_s: float = FIRST_ROUND_S) -> None:
    """Solve the program that stands in `source` as an npz archive, in rounds, one JSON line each."""
    with np.load(io.BytesIO(source.read()), allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    matrix = csr_array((arrays["values"], arrays["columns"], arrays["row_starts"]), shape=arrays["shape"])
    constraint = LinearConstraint(matrix, arrays["row_lower"], arrays["row_upper"])
    bounds = Bounds(arrays["lower"], arrays["upper"])
    deadline = time.monotonic() + float(arrays["time_limit_s"])
    round_s = first_round_s
    while (left := deadline - time.monotonic()) > 0:
        # A last round that would be cut short is worth more as part of this one.
        limit = (
            left if left < round_s * (1 + ROUND_GROWTH) and round_s > first_round_s else min(round_s, left)
        )
        found = milp(
            arrays["cost"],
            integrality=arrays["integrality"],
            bounds=bounds,
            constraints=constraint,
            options={"time_limit": limit, "mip_rel_gap": float(arrays["gap_ratio"])},
        )
        answer = {
            "bound": None if found.mip_dual_bound is None else float(found.mip_dual_bound),
            "values": None if found.x is None else [float(value) for value in found.x],
        }
        target.write(json.dumps(answer) + "\n")
        target.flush()
        if found.status in (0, 2):
            return
        round_s *= ROUND_GROWTH


if __name__ == "__main__":
    # HiGHS itself prints to standard output now and then; the answers go out by a copy of it.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        # In one round nothing but the limit looks at the clock, and the answer is always the same.
        main(sys.stdin.buffer, answers, math.inf if "--once" in sys.argv else FIRST_ROUND_S)
