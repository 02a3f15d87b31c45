"""Other processes evaluate the last services into the cache, and end with the one that started them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cache_home import own_cache_home

from fleetplan.fleet.machine import usable_cores
from fleetplan.perfmodel.landscape import cache
from fleetplan.planner.candidates import ahead, build_candidates
from fleetplan.scenarios.load import load_fleet

SERVICE = """\
  - name: {name}
    model: llama3-8b
    workload: {{input_tokens: {input_tokens}, output_tokens: 100}}
    slo: {{ttft_ms: 2000, tpot_ms: 60}}
    demand: 1
"""
FLEET = """\
version: 1
offers:
  - {name: one, hardware: MI300X, rent_usd_per_accelerator_hour: 2.0}
services:
""" + "".join(SERVICE.format(name=f"chat-{n}", input_tokens=500 + n) for n in range(4))


@pytest.fixture
def fleet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache_home(tmp_path / "cache")))
    monkeypatch.setenv(ahead.SWITCH, "on")
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    return path


def landscapes() -> int:
    return len(list(cache.cache_folder().glob("*.npz")))


@pytest.mark.skipif(usable_cores() < 2, reason="one core")
def test_the_last_services_are_evaluated_by_another_process(fleet_file: Path) -> None:
    fleet = load_fleet(fleet_file)
    with ahead.evaluating_ahead(fleet, after_s=0) as about_to_evaluate:
        about_to_evaluate(len(fleet.services))
        end_s = time.monotonic() + 60
        while landscapes() < 3 and time.monotonic() < end_s:
            time.sleep(0.05)
    # The first one is this process's own.
    assert landscapes() == 3
    found = build_candidates(fleet, lambda _: None)
    assert landscapes() == 4
    cache.forget()
    assert found == build_candidates(fleet, lambda _: None)


def test_few_or_fast_services_are_evaluated_here(fleet_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = load_fleet(fleet_file)
    monkeypatch.setattr(ahead, "_started", lambda _: pytest.fail("a process was started"))
    with ahead.evaluating_ahead(fleet, after_s=60) as about_to_evaluate:
        about_to_evaluate(len(fleet.services))
    with ahead.evaluating_ahead(fleet, after_s=0) as about_to_evaluate:
        about_to_evaluate(ahead.LEAST_SERVICES - 1)
    for switch in (ahead.SWITCH, "FLEETPLAN_LANDSCAPE_CACHE"):
        with monkeypatch.context() as inside:
            inside.setenv(switch, "off")
            with ahead.evaluating_ahead(fleet, after_s=0) as about_to_evaluate:
                about_to_evaluate(len(fleet.services))


def test_a_process_without_its_parent_ends(fleet_file: Path) -> None:
    other = str(os.getppid())
    command = [sys.executable, "-m", "fleetplan.planner.candidates.ahead", other]
    done = subprocess.run(
        command, input=pickle.dumps(load_fleet(fleet_file)), capture_output=True, check=False, timeout=60
    )
    assert b"OutOfTimeError" in done.stderr
    assert not landscapes()
