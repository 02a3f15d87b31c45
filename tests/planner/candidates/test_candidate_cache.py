"""Candidates are kept: under the name of all that they depend on, and believed for nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.warm import ran

from fleetplan.fleet.files import SWITCH
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import CandidateSet, build_candidates, candidate_cache, kept_candidates
from fleetplan.scenarios.load import load_fleet

FLEET = """
version: 1
hardware: {big: {accelerators_per_host: 8}, small: {accelerators_per_host: 4}}
offers:
  - {name: b, hardware: big, rent_usd_per_accelerator_hour: 5.0}
  - {name: s, hardware: small, rent_usd_per_accelerator_hour: 2.5}
policy:
  kv_pairs:
    - {prefill: big, decode: big}
    - {prefill: big, decode: small}
    - {prefill: small, decode: small}
services:
  - {name: own, engines: rates.csv, demand: 20}
  - {name: modelled, model: config.json, demand: 1, workload: {input_tokens: 100, output_tokens: 10}}
"""
RATES = """phase,hardware,config,accelerators_per_replica,requests_per_s
prefill,big,p,4,30
decode,big,d,2,9
aggregated,small,a,1,2.5
"""
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(SWITCH, raising=False)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "rates.csv").write_text(RATES)
    (tmp_path / "fleet.yaml").write_text(FLEET)
    return tmp_path


def asked(fleet: Fleet, keep: tuple[tuple[str, str, str, str], ...] = ()) -> tuple[CandidateSet, bool]:
    """Candidates of a fleet, and whether anything was evaluated for them."""
    said: list[str] = []
    found = kept_candidates(fleet, said.append, keep)
    return found, bool(said)


def test_candidates_are_built_once_and_come_back_as_they_were(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = load_fleet(folder / "fleet.yaml")
    first, evaluated = asked(fleet)
    assert evaluated
    assert first == build_candidates(fleet, lambda _: None)
    assert {each.service for each in first.candidates} == {"own"}
    assert asked(load_fleet(folder / "fleet.yaml")) == (first, False)
    monkeypatch.chdir(folder)
    assert asked(load_fleet(Path("fleet.yaml"))) == (first, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "rates.csv").write_text(RATES.replace("2.5", "2.6")),
        lambda folder: (folder / "fleet.yaml").write_text(FLEET.replace("demand: 20", "demand: 21")),
        lambda folder: (folder / "fleet.yaml").write_text(
            FLEET.replace("prefill: big, decode: small", "prefill: small, decode: big")
        ),
        lambda folder: (folder / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 3})),
        lambda folder: (
            (folder / "data/fleetplan/optables/H100-SXM").mkdir(parents=True)
            or (folder / "data/fleetplan/optables/H100-SXM/own.csv").write_text("x")
        ),
    ],
    ids=["rates", "demand", "kv pairs", "model", "operator tables"],
)
def test_what_changes_candidates_builds_them_anew(folder: Path, change: Callable[[Path], object]) -> None:
    asked(load_fleet(folder / "fleet.yaml"))
    change(folder)
    assert asked(load_fleet(folder / "fleet.yaml"))[1]


def test_another_program_other_versions_and_other_configurations_to_keep_build_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = load_fleet(folder / "fleet.yaml")
    asked(fleet)
    assert asked(fleet, (("own", "decode", "big", "d"),))[1]
    for name in ("source_sha256", "installed_version"):
        with monkeypatch.context() as changed:
            changed.setattr(candidate_cache, name, lambda *_: "another")
            assert asked(fleet)[1]
    assert not asked(fleet)[1]
    # A calibration, say: its content is known by its hash alone.
    assert asked(replace(fleet, input_hashes={**fleet.input_hashes, "calibration.json": "another"}))[1]
    assert asked(replace(fleet, services=fleet.services[:1]))[1]


def test_a_file_that_is_damaged_or_under_another_name_is_not_believed(folder: Path) -> None:
    fleet = load_fleet(folder / "fleet.yaml")
    found, _ = asked(fleet)
    (path,) = candidate_cache.candidates_folder().iterdir()
    whole = path.read_text()
    other = whole.replace(path.stem, "0" * 64)
    for content in ("", "{", "[1]", whole[:-9], whole.replace('"phase"', '"part"'), other):
        path.write_text(content)
        assert asked(fleet) == (found, True)
        assert path.read_text() == whole


def test_it_can_be_switched_off_and_a_folder_that_cannot_be_written_costs_no_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = load_fleet(folder / "fleet.yaml")
    (folder / "cache").write_text("no folder")
    assert asked(fleet)[1]
    (folder / "cache").unlink()
    monkeypatch.setenv(SWITCH, "off")
    assert asked(fleet)[1]
    assert not (folder / "cache").exists()


def test_the_oldest_are_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_cache, "CACHED_FILES", 2)
    fleet = load_fleet(folder / "fleet.yaml")
    for name in "abc":
        asked(replace(fleet, name=name))
    assert len(list(candidate_cache.candidates_folder().iterdir())) == 2


CHECK = """
import sys
from fleetplan.planner.cli import main
try:
    main(["check", sys.argv[1]])
except SystemExit as end:
    assert not end.code, end.code
print(*({"pandas", "pyarrow", "scipy", "ortools", "matplotlib"} & set(sys.modules)), file=sys.stderr)
"""


def test_a_second_check_in_another_process_evaluates_nothing_and_loads_no_tables(folder: Path) -> None:
    modelled = FLEET.replace("  - {name: own, engines: rates.csv, demand: 20}\n", "")
    (folder / "fleet.yaml").write_text(modelled.replace("hardware: small, rent", "hardware: MI300X, rent"))
    words = ["-c", CHECK, str(folder / "fleet.yaml")]
    first = ran(words, text=True)
    # It orders what it hashes in another way, and begins with nothing imported.
    second = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONHASHSEED": "2", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert first.stdout == second.stdout
    assert re.search("is valid: [1-9][0-9]* candidates", first.stdout)
    assert any(line.startswith("evaluating") for line in first.stderr.splitlines())
    assert second.stderr.splitlines() == [""]
