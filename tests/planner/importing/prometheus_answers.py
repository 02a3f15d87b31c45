"""Answers of Prometheus for one day of a service."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.cli import main
from fleetplan.planner.importing.demand import DemandOptions, demand_fragment, observed_services
from fleetplan.planner.importing.prometheus import parse_answers

STEP_S = 300
DAY_S = 86_400
TIMES = np.arange(1_790_000_000 // DAY_S * DAY_S, 1_790_000_000 // DAY_S * DAY_S + 2 * DAY_S, STEP_S)
MODEL = "meta-llama/Llama-3.1-8B"


def matrix(*series: tuple[dict[str, str], Any]) -> str:
    """An answer of /api/v1/query_range, by the HTTP API of Prometheus."""
    result = [
        {"metric": labels, "values": [[float(t), str(float(v))] for t, v in zip(TIMES, values, strict=True)]}
        for labels, values in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def flat(value: float) -> Any:
    return np.full(TIMES.size, value)


def day(low: float, high: float, first: int, last: int) -> Any:
    """Requests/s that are high within hours of the day."""
    hours = TIMES / 3600 % 24
    return np.where((hours >= first) & (hours < last), high, low)


def saved(**changes: str) -> dict[str, str]:
    east, west = {"model_name": MODEL, "region": "east"}, {"model_name": MODEL, "region": "west"}
    other = {"model_name": "other", "region": "east"}
    both = {"model_name": MODEL}
    return {
        "requests": matrix(
            (east, day(2.0, 10.0, 6, 12)), (west, day(1.0, 4.0, 18, 24)), (other, flat(0.5))
        ),
        # Of 100 requests a step 60 have up to 100 tokens, 40 up to 1,000; in the mean 300.
        "prompt_tokens": matrix(
            ({**both, "le": "100"}, flat(60.0)), ({**both, "le": "1000.0"}, flat(100.0)),
            ({**both, "le": "+Inf"}, flat(100.0)),
        ),
        "prompt_tokens_sum": matrix((both, flat(30_000.0))),
        "output_tokens": matrix(
            ({**both, "le": "50"}, flat(75.0)), ({**both, "le": "+Inf"}, flat(100.0)),
        ),
        "output_tokens_sum": matrix((both, flat(4_000.0))),
        "cache_hits": matrix((both, flat(250.0))),
        "cache_queries": matrix((both, flat(1_000.0))),
        **changes,
    }  # fmt: skip


def options(**changes: Any) -> DemandOptions:
    given = {"service_label": "model_name", "region_label": "region", "region": None, "percentile": 100.0,
             "slices": 1, "source": "test"}  # fmt: skip
    return DemandOptions(**{**given, **changes})


def document(asked: DemandOptions, **changes: str) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(
        demand_fragment(observed_services(parse_answers(saved(**changes), "test"), asked), asked)
    )
    return found


def run(*arguments: object) -> int:
    try:
        main([str(each) for each in arguments])
    except SystemExit as ended:
        return int(ended.value) if hasattr(ended, "value") else int(ended.code or 0)
    return 0


asked: list[str] = []
"""Authorisation of every request of a server of the test."""
