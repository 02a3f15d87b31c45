"""The iterations of engines, compiled: a pool of thousands of requests takes some milliseconds.

In: the records of `fleetplan.perfmodel.replay.engine_state`. Out: the same, changed.
Face: `run`.
`fleetplan.perfmodel.replay.engine` alone loads it, when a simulation begins, and says by which rules it goes.
numba compiles what is here when it is first called; with `NUMBA_DISABLE_JIT=1` all of it runs as Python.
"""

from fleetplan.perfmodel.replay.compiled.iterations import OUTGROWN, PAUSED, RAN, TOO_LONG
from fleetplan.perfmodel.replay.compiled.loop import run

__all__ = ["OUTGROWN", "PAUSED", "RAN", "TOO_LONG", "run"]
