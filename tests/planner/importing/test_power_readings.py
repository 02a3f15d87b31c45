"""Power readings of the DCGM exporter, in the form of its labels and of Prometheus' answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.planner.command_line import run
from tests.planner.importing.fleets import fleet_with

from fleetplan.fleet.catalog import accelerators

H100 = "NVIDIA H100 80GB HBM3"


def series(card: int, values: list[float], model: str = H100, **labels: str) -> dict[str, Any]:
    """The readings of a card, one a minute."""
    names = {"UUID": f"GPU-{card}", "gpu": str(card), "Hostname": "node-1", "modelName": model}
    return {"metric": names | labels, "values": [[60 * n, str(value)] for n, value in enumerate(values)]}


def answer(*found: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(found)}})


def folder(tmp_path: Path, power: str, utilisation: str | None = None) -> Path:
    (tmp_path / "power.json").write_text(power, encoding="utf-8")
    if utilisation is not None:
        (tmp_path / "utilisation.json").write_text(utilisation, encoding="utf-8")
    return tmp_path


def test_idle_and_full_power_are_those_of_the_readings_with_the_share_of_the_host(tmp_path: Path) -> None:
    busy = [600.0 + n % 100 for n in range(400)]
    quiet = [110.0, 120.0, 130.0] * 40
    # Half loaded: neither of them.
    between = [300.0] * 50
    power, load = busy + quiet + between, [95.0] * 400 + [0.0] * 120 + [50.0] * 50
    source = folder(
        tmp_path, answer(series(0, power), series(1, power)), answer(series(0, load), series(1, load))
    )
    assert run("import", "dcgm", source, "--out", tmp_path / "power.yaml") == 0
    text = (tmp_path / "power.yaml").read_text(encoding="utf-8")
    part = accelerators()["H100-SXM"]
    assert part.all_in_w is not None
    assert part.tdp_w is not None
    rest = part.all_in_w - part.tdp_w
    figures = yaml.safe_load(text)["hardware"]["H100-SXM"]
    assert figures["all_in_w"] == pytest.approx(698.0 + rest, abs=1)
    assert figures["idle_w"] == pytest.approx(120.0 + 0.15 * rest, abs=0.1)
    assert "800 readings" in text
    assert "240 readings" in text


def test_a_fleet_takes_the_figures(tmp_path: Path) -> None:
    source = folder(tmp_path, answer(series(0, [100.0] * 200)), answer(series(0, [0.0] * 200)))
    assert run("import", "dcgm", source, "--out", tmp_path / "power.yaml") == 0
    found = fleet_with(
        tmp_path, "power.yaml", offers=[{"name": "rent", "hardware": "H100-SXM", "price_book": "rental_3y"}]
    ).hardware["H100-SXM"]
    written = yaml.safe_load((tmp_path / "power.yaml").read_text(encoding="utf-8"))
    assert found.idle_w_per_accelerator == pytest.approx(written["hardware"]["H100-SXM"]["idle_w"])


@pytest.mark.parametrize(
    ("power", "utilisation", "said"),
    [
        ([series(0, [700.0] * 50)], [series(0, [99.0] * 50)], "50 readings at 90 %"),
        ([series(0, [700.0] * 200)], None, "0 readings at 90 %"),
        ([series(0, [700.0] * 200)], [series(1, [99.0] * 200)], "0 readings at 90 %"),
        (
            [series(0, [70.0] * 200, model="NVIDIA T4")],
            [series(0, [0.0] * 200)],
            "1 cards: hardware 'NVIDIA T4'",
        ),
        ([], [], "there are no readings"),
    ],
)
def test_too_few_readings_are_one_error(
    power: list[Any],
    utilisation: list[Any] | None,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = folder(tmp_path, answer(*power), None if utilisation is None else answer(*utilisation))
    assert run("import", "dcgm", source, "--out", tmp_path / "power.yaml") == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "power.yaml").exists()


def test_a_folder_without_readings_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", "dcgm", tmp_path, "--out", tmp_path / "power.yaml") == 2
    assert "power.json" in capsys.readouterr().err
