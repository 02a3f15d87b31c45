import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from tests.parts import each_once
from tests.perfmodel.fakes import WorkSource, dense_model

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.files import SWITCH
from fleetplan.fleet.inventory import Precision, Techniques
from fleetplan.fleet.packages import source_files
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape import (
    Landscape,
    LatencyTarget,
    RequestShape,
    SearchSpace,
    cached_landscape,
    service_landscape,
)
from fleetplan.perfmodel.landscape import cache as landscape_cache
from fleetplan.perfmodel.landscape.cache import family_key, file_key
from fleetplan.perfmodel.optables import OperatorSource
from fleetplan.perfmodel.optables.measured.experts import FASTEST_EXPERTS

REQUEST = RequestShape(2048, 150, 8192)
TARGET = LatencyTarget(350.0, 30.0)
SPACE = SearchSpace(max_accelerators=4, decode_batches=(1, 16, 64))
PART = accelerators()["GPU-A"]


class Library:
    """Stand-in for measured tables: files with contents that may change."""

    system = "made_up"
    version = ""
    activation_scales = "static"
    expert_kernels = FASTEST_EXPERTS

    def __init__(self, *hashes: str) -> None:
        self.hashes = hashes

    def file_hashes(self) -> tuple[str, ...]:
        return self.hashes

    def rows(self, *_: object) -> None:
        return None


def evaluator(*hashes: str) -> Evaluator:
    source = OperatorSource(PART, "vllm", Library(*hashes))  # type: ignore[arg-type]
    return Evaluator(dense_model(), PART, source, Precision("bf16", "bf16"))


def landscape_key(
    own: Evaluator, request: RequestShape, target: LatencyTarget, space: SearchSpace
) -> str | None:
    family = family_key(own, request, space, "", None)
    return None if family is None else file_key(family, target)


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    landscape_cache.forget()


@cache
def everything() -> pd.DataFrame:
    """The landscape without limits, evaluated once."""
    return service_landscape(evaluator(), REQUEST, LatencyTarget(), SPACE).table


def as_kept(landscape: Landscape) -> Landscape:
    """Usable rows without their names, as the cache has them."""
    usable = landscape.without_excluded()
    return replace(usable, table=usable.table.drop(columns="config"))


def at(share: float, name: str) -> float:
    """What so many rows of all take at most. [ms]"""
    return float(everything()[name].quantile(share))


@cache
def tightest_of_all() -> tuple[LatencyTarget, Landscape]:
    """Limits that are tighter than those of any test, and what they leave."""
    limits = LatencyTarget(at(0.1, "ttft_ms"), at(0.1, "tpot_ms"))
    return limits, as_kept(service_landscape(evaluator(), REQUEST, limits, SPACE))


@pytest.mark.parametrize("from_file", [False, True])
@pytest.mark.parametrize(("ttft_share", "tpot_share"), each_once((0.25, 0.5, 1.0), (0.5, 1.0, 0.25)))
def test_tighter_limits_are_answered_without_any_work(
    ttft_share: float, tpot_share: float, from_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = LatencyTarget(at(0.8, "ttft_ms"), at(0.8, "tpot_ms"))
    tight = LatencyTarget(at(0.8 * ttft_share, "ttft_ms"), at(0.8 * tpot_share, "tpot_ms"))
    fresh = as_kept(service_landscape(evaluator(), REQUEST, tight, SPACE))
    if from_file:
        cached_landscape(evaluator(), REQUEST, loose, SPACE, tmp_path)
        landscape_cache.forget()
    cached_landscape(evaluator(), REQUEST, loose, SPACE, tmp_path)
    monkeypatch.setattr(landscape_cache, "ask_landscape", None)
    found = cached_landscape(evaluator(), REQUEST, tight, SPACE, tmp_path)
    pd.testing.assert_frame_equal(found.table, fresh.table)
    assert found.excluded_counts == fresh.excluded_counts
    # What is left out once is so of tighter limits, too.
    tightest, again = tightest_of_all()
    assert found.within(tightest).excluded_counts == again.excluded_counts


def test_looser_limits_and_those_of_another_folder_are_evaluated(tmp_path: Path) -> None:
    tight = LatencyTarget(350.0, 3.0)
    assert not tight.allows(TARGET)
    assert TARGET.allows(tight)
    assert LatencyTarget().allows(tight)
    assert not tight.allows(LatencyTarget(350.0))
    cached_landscape(evaluator(), REQUEST, tight, SPACE, tmp_path)
    found = cached_landscape(evaluator(), REQUEST, TARGET, SPACE, tmp_path)
    fresh = as_kept(service_landscape(evaluator(), REQUEST, TARGET, SPACE))
    pd.testing.assert_frame_equal(found.table, fresh.table)
    cached_landscape(evaluator(), REQUEST, tight, SPACE, tmp_path / "other")
    assert len(list((tmp_path / "other").iterdir())) == 1


def test_the_second_answer_is_the_first_without_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tpot_ms = service_landscape(evaluator(), REQUEST, TARGET, SPACE).table["tpot_ms"]
    tight = LatencyTarget(350.0, float(tpot_ms.median()))
    whole = service_landscape(evaluator(), REQUEST, tight, SPACE)
    fresh = as_kept(whole)
    assert 0 < len(fresh.table) < len(whole.table)
    first = cached_landscape(evaluator(), REQUEST, tight, SPACE, tmp_path)
    monkeypatch.setattr(landscape_cache, "ask_landscape", None)
    program_cache = cached_landscape(evaluator(), REQUEST, tight, SPACE, tmp_path)
    landscape_cache.forget()
    again = cached_landscape(evaluator(), REQUEST, tight, SPACE, tmp_path)
    for found in (first, program_cache, again):
        pd.testing.assert_frame_equal(found.table, fresh.table)
        assert found.excluded_counts == fresh.excluded_counts
        pd.testing.assert_frame_equal(found.usable, fresh.usable)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_landscape_under_the_name_of_another_one_is_not_believed(tmp_path: Path) -> None:
    """Whatever changes places in the cache changes no answer."""
    spaces = [replace(SPACE, decode_batches=batches) for batches in ((1,), (1, 16), (64,))]
    fresh = [cached_landscape(evaluator(), REQUEST, TARGET, space, tmp_path).table for space in spaces]
    paths = sorted(tmp_path.iterdir())
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    for space, table in zip(spaces, fresh, strict=True):
        found = cached_landscape(evaluator(), REQUEST, TARGET, space, tmp_path).table
        pd.testing.assert_frame_equal(found, table)
    # Each was replaced by its own; the times of writing in an archive differ.
    assert sorted(tmp_path.iterdir()) == paths


def test_anything_that_changes_changes_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    own = evaluator("a 1")
    names = [landscape_key(own, REQUEST, TARGET, SPACE)]

    def named(changed: Evaluator) -> str | None:
        return landscape_key(changed, REQUEST, TARGET, SPACE)

    faster = replace(PART, hbm_gb_per_s=PART.hbm_gb_per_s + 1)
    names += [
        named(evaluator("a 2")),  # a table
        named(replace(own, architecture=dense_model(layers=5))),
        named(replace(own, precision=Precision("fp8", "bf16"))),
        named(replace(own, kv_residency="microbatch")),
        named(replace(own, techniques=Techniques(chunk_tokens=512))),
        named(replace(own, accelerator=faster)),  # the catalogue
        named(replace(own, source=OperatorSource(PART, "sglang", Library("a 1")))),  # type: ignore[arg-type]
        named(replace(own, source=OperatorSource(faster, "vllm", Library("a 1")))),  # type: ignore[arg-type]
        landscape_key(own, replace(REQUEST, output_tokens=151), TARGET, SPACE),
        landscape_key(own, REQUEST, replace(TARGET, tpot_ms=31.0), SPACE),
        landscape_key(own, REQUEST, TARGET, replace(SPACE, decode_batches=(1, 16))),
    ]
    monkeypatch.setattr(landscape_cache, "program_sha256", lambda: "another program")
    names.append(named(own))
    monkeypatch.undo()
    monkeypatch.setattr(landscape_cache, "installed_version", lambda _: "another version")
    names.append(named(own))
    monkeypatch.undo()
    assert named(evaluator("a 1")) == names[0]
    assert None not in names
    assert len(set(names)) == len(names)


def test_times_of_unknown_origin_are_not_kept(tmp_path: Path) -> None:
    unknown = replace(evaluator(), source=WorkSource())
    assert landscape_key(unknown, REQUEST, TARGET, SPACE) is None
    cached_landscape(unknown, REQUEST, TARGET, SPACE, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda whole: whole[: len(whole) // 2], lambda _: b"PK\x03\x04"]
)
def test_a_damaged_file_is_computed_anew(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    first = cached_landscape(evaluator(), REQUEST, TARGET, SPACE, tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    landscape_cache.forget()
    again = cached_landscape(evaluator(), REQUEST, TARGET, SPACE, tmp_path)
    pd.testing.assert_frame_equal(again.table, first.table)
    assert len(path.read_bytes()) == len(whole)


def test_many_writers_leave_one_whole_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda _: cached_landscape(evaluator(), REQUEST, TARGET, SPACE, tmp_path), range(8))
        )
    for each in found:
        pd.testing.assert_frame_equal(each.table, found[0].table)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]


def test_what_was_used_longest_ago_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landscape_cache, "CACHED_FILES", 2)
    for age, output in enumerate((10, 20, 30)):
        request = replace(REQUEST, output_tokens=output)
        cached_landscape(evaluator(), request, TARGET, SPACE, tmp_path)
        key = landscape_key(evaluator(), request, TARGET, SPACE)
        path = tmp_path / f"{key}.npz"
        os.utime(path, (1000 + age, 1000 + age)) if path.exists() and output < 30 else None
    kept = {path.stem for path in tmp_path.iterdir()}
    assert landscape_key(evaluator(), replace(REQUEST, output_tokens=10), TARGET, SPACE) not in kept
    assert len(kept) == 2


def test_it_can_be_switched_off_and_a_folder_that_cannot_be_written_costs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    assert len(cached_landscape(evaluator(), REQUEST, TARGET, SPACE, blocked / "cache").table)
    monkeypatch.setenv(SWITCH, "off")
    cached_landscape(evaluator(), REQUEST, TARGET, SPACE, tmp_path / "unused")
    assert not (tmp_path / "unused").exists()


def test_the_key_covers_every_module_that_an_evaluation_imports() -> None:
    hashed = set(source_files("perfmodel", "fleet"))
    loaded = {
        Path(module.__file__).resolve()
        for name, module in sys.modules.items()
        if name.startswith(("fleetplan.perfmodel.", "fleetplan.fleet.")) and module.__file__
    }
    assert loaded <= hashed
    assert {path.parent.name for path in loaded} >= {"landscape", "evaluator", "catalog", "inventory"}
