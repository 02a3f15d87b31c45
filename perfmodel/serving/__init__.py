"""A replica under load: how its engines fill iterations, which requests arrive, what an iteration costs.

In: an evaluator and a load. Out: `burst` and `replica_loops.closed_loop` return a `SteadyState`,
`replica_loops.full_batches` the rates of replicas with full batches; `requests_of` draws `Requests`;
`step_grids` and `step_costs` return the iteration times that queueing and replay read; `default_scheduling`
returns the default behaviour of a framework.
"""

from fleetplan.perfmodel.serving.admission import Admission
from fleetplan.perfmodel.serving.arrivals import (
    Regimes,
    RequestKind,
    regime_times_ms,
    renewal_times_ms,
    requests_of,
)
from fleetplan.perfmodel.serving.bursts import burst
from fleetplan.perfmodel.serving.chat_templates import template_ms
from fleetplan.perfmodel.serving.evaluated_grids import Range, StepGrids
from fleetplan.perfmodel.serving.iteration_costs import step_costs, step_grids
from fleetplan.perfmodel.serving.replica_load import (
    Load,
    MeanIteration,
    SteadyState,
    cache_limit,
    mean_iteration,
)
from fleetplan.perfmodel.serving.requests import Requests
from fleetplan.perfmodel.serving.scheduling import (
    FRONT_ENDS,
    FrontEnd,
    Scheduling,
    SchedulingOverrides,
    default_scheduling,
    server_scheduling,
)
from fleetplan.perfmodel.serving.step_costs import PROMPT_GRAIN_TOKENS, StepCosts

__all__ = [
    "FRONT_ENDS",
    "PROMPT_GRAIN_TOKENS",
    "Admission",
    "FrontEnd",
    "Load",
    "MeanIteration",
    "Range",
    "Regimes",
    "RequestKind",
    "Requests",
    "Scheduling",
    "SchedulingOverrides",
    "SteadyState",
    "StepCosts",
    "StepGrids",
    "burst",
    "cache_limit",
    "default_scheduling",
    "mean_iteration",
    "regime_times_ms",
    "renewal_times_ms",
    "requests_of",
    "server_scheduling",
    "step_costs",
    "step_grids",
    "template_ms",
]
