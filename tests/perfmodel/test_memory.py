"""Memory that evaluations keep in a long-running process such as `plan serve`."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path

import pytest
from tests.live_objects import live_objects
from tests.perfmodel.fakes import dense_model

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator, Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape import LatencyTarget, RequestShape, SearchSpace, cached_landscape
from fleetplan.perfmodel.landscape import cache as landscape_cache
from fleetplan.perfmodel.optables import OperatorSource, operator_source
from fleetplan.perfmodel.optables.source import KEPT_SOURCES
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.serving import Range, step_grids

PART = accelerators()["GPU-A"]


def evaluate(part: Accelerator, folder: Path) -> None:
    """Do with a part what a fleet asks for: rows for a landscape, and grids for a queue."""
    own = Evaluator(dense_model(), part, operator_source(part, "vllm"), Precision("bf16", "bf16"))
    space = SearchSpace(max_accelerators=1, decode_batches=(1, 16))
    cached_landscape(own, RequestShape(2048, 150, 8192), LatencyTarget(350.0, 30.0), space, folder)
    step_grids(own, [Parallelism()], Range(8, 2048, 8192))


def test_one_bounded_cache_holds_the_tables_of_parts_and_nothing_else_does(tmp_path: Path) -> None:
    """One bounded cache holds the operator tables, megabytes for each part; nothing else keeps them alive."""
    assert operator_source.cache_parameters()["maxsize"] == KEPT_SOURCES
    operator_source.cache_clear()
    before = live_objects(OperatorSource)
    for step in range(3):
        evaluate(replace(PART, hbm_gb_per_s=PART.hbm_gb_per_s + step), tmp_path)
    assert live_objects(OperatorSource) == before + 3
    operator_source.cache_clear()
    assert live_objects(OperatorSource) == before


def test_landscapes_are_remembered_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landscape_cache, "MOST_REMEMBERED", 2)
    landscape_cache.forget()
    for step in range(3):
        evaluate(replace(PART, hbm_gb_per_s=PART.hbm_gb_per_s + step), tmp_path)
        assert len(landscape_cache._memory) == min(step + 1, 2)


@pytest.mark.more
def test_proxies_of_what_is_gone_are_not_asked() -> None:
    left = weakref.proxy(Forgotten())
    assert live_objects(Forgotten) == 0
    del left


class Forgotten:
    """Whose only object is gone at once."""
