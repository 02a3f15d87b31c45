"""Requests through simulated engines: percentiles, queues, and what the KV caches hold.

In: `Requests` (drawn, or of a trace) and a `Deployment`. Out: a `ServiceRun` with the times of every request.
Entry points: `run_service`, `sustained_rate_per_s`, `read_trace`.
"""

from fleetplan.perfmodel.replay.capacity import EnginePool, LoadTarget, sustained_rate_per_s
from fleetplan.perfmodel.replay.deployed import deployed_engine
from fleetplan.perfmodel.replay.pools import PrefillPool, Router
from fleetplan.perfmodel.replay.service_run import (
    Deployment,
    EngineGroup,
    GroupUse,
    PrefillGroup,
    ServiceRun,
    run_service,
    running_over_time,
)
from fleetplan.perfmodel.replay.traces import Trace, read_trace

__all__ = [
    "Deployment",
    "EngineGroup",
    "EnginePool",
    "GroupUse",
    "LoadTarget",
    "PrefillGroup",
    "PrefillPool",
    "Router",
    "ServiceRun",
    "Trace",
    "deployed_engine",
    "read_trace",
    "run_service",
    "running_over_time",
    "sustained_rate_per_s",
]
