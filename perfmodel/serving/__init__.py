"""A replica with traffic: its steady state, the requests that arrive, and what each iteration costs.

In: an evaluator and a load. Out: `closed_loop`, `open_loop` and `burst` return a `SteadyState`; `requests_of`
draws `Requests`; `step_costs` tabulates the times that queueing and replay read.
"""

from fleetplan.perfmodel.serving.arrivals import (
    Regimes,
    RequestKind,
    regime_times_ms,
    renewal_times_ms,
    requests_of,
)
from fleetplan.perfmodel.serving.bursts import burst
from fleetplan.perfmodel.serving.iteration_costs import PROMPT_GRAIN_TOKENS, Range, StepCosts, step_costs
from fleetplan.perfmodel.serving.replica_load import (
    PREFILL_TOKENS_LIMIT,
    Load,
    SteadyState,
    closed_loop,
    open_loop,
)
from fleetplan.perfmodel.serving.requests import Requests

__all__ = [
    "PREFILL_TOKENS_LIMIT",
    "PROMPT_GRAIN_TOKENS",
    "Load",
    "Range",
    "Regimes",
    "RequestKind",
    "Requests",
    "SteadyState",
    "StepCosts",
    "burst",
    "closed_loop",
    "open_loop",
    "regime_times_ms",
    "renewal_times_ms",
    "requests_of",
    "step_costs",
]
