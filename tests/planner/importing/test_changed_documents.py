"""Documents with any changed value are read, rejected with a reason, or refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.planner.importing import benchmark_results as benchmarks
from tests.planner.importing import cloud_price_lists as clouds
from tests.planner.importing import cluster_nodes as clusters
from tests.planner.importing import prometheus_answers as monitoring

from fleetplan.fleet.errors import InputError
from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment
from fleetplan.planner.importing.benchmarks import import_benchmarks
from fleetplan.planner.importing.cloud_prices import aws_offers, azure_offers
from fleetplan.planner.importing.clusters import kubernetes_pools
from fleetplan.planner.importing.demand import FEWEST_STEPS, demand_fragment, lengths_text, observed_services
from fleetplan.planner.importing.offers import OfferOptions
from fleetplan.planner.importing.prometheus import parse_answers
from fleetplan.planner.importing.records import read_json
from fleetplan.planner.importing.slurm import slurm_pools

CHANGES = 60
"""Of each document."""

VALUES: list[Any] = [
    0, -1, 1e300, 1e-300, float("inf"), float("nan"), None, "x", "", [], {}, True, "1e5", [1], [None],
    {"a": 1}, 10**18, "1" * 400, "\x1b[31m", [[]], " 8 ",
]  # fmt: skip
GONE = object()

GIVEN = MeasuredDeployment("mock", "H100-SXM", "vllm", "0.24.0", "bf16", "bf16", 1)
OFFERS = OfferOptions("2026-11-01", spot_max_share=0.5, terms=True)


def _benchmark(path: Path) -> tuple[object, Callable[[Any], object]]:
    form = next(
        each for each in ("aiperf", "guidellm", "inference-perf", "vllm") if path.name.startswith(each)
    )
    return read_json(path), lambda document: import_benchmarks(form, document, GIVEN)


def _monitored(document: Any) -> None:
    answers = {name: json.dumps(answer) for name, answer in document.items()}
    options = monitoring.options()
    found = observed_services(parse_answers(answers, "test"), options)
    demand_fragment(found, options)
    for service in found:
        lengths_text(service)


def _shortened(answers: dict[str, str]) -> dict[str, Any]:
    """Return answers with enough steps to recognise bursts."""
    found = {name: json.loads(text) for name, text in answers.items()}
    for answer in found.values():
        for series in answer["data"]["result"]:
            series["values"] = series["values"][: FEWEST_STEPS + 10]
    return found


DOCUMENTS: dict[str, tuple[object, Callable[[Any], object]]] = {
    **{
        path.stem: _benchmark(path)
        for path in sorted(benchmarks.WRITTEN.glob("*.json"))
        if not path.name.startswith("sglang")
    },
    "inferencex": (
        benchmarks.INFERENCEX,
        lambda document: import_benchmarks("inferencex", document, benchmarks.GIVEN),
    ),
    "kubernetes": (
        clusters.NODES,
        lambda document: kubernetes_pools(document, "nodes.json", clusters.OPTIONS),
    ),
    "slurm": (clusters.SINFO, lambda document: slurm_pools(document, "sinfo.json", clusters.OPTIONS)),
    "aws": (clouds.aws_products(), lambda document: aws_offers(document, "aws.json", OFFERS)),
    "azure": (
        {"Items": [clouds.azure_item("Standard_ND96isr_H100_v5", 98.0)]},
        lambda document: azure_offers(document, "azure.json", OFFERS),
    ),
    "prometheus": (_shortened(monitoring.saved()), _monitored),
}


def _places(value: object, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of values that may be changed; of long lists, the first items."""
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:4]) if isinstance(value, list) else ()
    )
    for key, each in inner:
        yield (*here, key)
        yield from _places(each, (*here, key))


@pytest.mark.parametrize("name", list(DOCUMENTS))
def test_any_value_in_the_place_of_another_is_taken_or_told(name: str) -> None:
    document, read = DOCUMENTS[name]
    read(document)
    chance, places = random.Random(name), list(_places(document))
    # Without its requests the folder of a server's answers is refused before.
    places = [each for each in places if each != ("requests",)]
    for _ in range(CHANGES):
        place, value = chance.choice(places), chance.choice([*VALUES, GONE, GONE])
        changed: Any = deepcopy(document)
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        if value is GONE:
            del inner[place[-1]]
        else:
            inner[place[-1]] = value
        try:
            read(changed)
        except InputError:
            continue
        except Exception as error:
            raise AssertionError(f"{place} changed to {value!r}") from error
