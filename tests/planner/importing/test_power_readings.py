"""Power readings of the DCGM exporter, in its own format and that of Prometheus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.planner.command_line import run
from tests.planner.importing.fleets import fleet_with

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.document.plain import read_yaml

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
    figures = read_yaml(text)["hardware"]["H100-SXM"]
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
    written = read_yaml((tmp_path / "power.yaml").read_text(encoding="utf-8"))
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
            "1 card: hardware 'NVIDIA T4'",
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


def dmon(samples: list[tuple[int, str, str]]) -> str:
    """Return output of `dcgmi dmon -e 155,203`: columns of fixed width, a header every 15 samples."""
    lines = []
    for number, (card, watts, percent) in enumerate(samples):
        if number % 15 == 0:
            lines += [f"{'#Entity':<10}{'POWER':<18}{'GPUTL':<18}", f"{'ID':<10}{'W':<18}{'':<18}"]
        lines.append(f"{f'GPU {card}':<10}{watts:<18}{percent:<18}")
    return "\n".join([*lines, "", "dmon was stopped do to receiving a signal", ""])


@pytest.mark.parametrize("closed_up", [False, True])
def test_the_output_of_dcgmi_dmon_is_read_with_the_kind_of_its_cards(
    tmp_path: Path, closed_up: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [(card, f"{690 + n % 10}.000", "98") for n in range(60) for card in (0, 1)]
    samples += [(card, "120.000", "0") for n in range(60) for card in (0, 1)]
    samples += [(0, "N/A", "N/A"), (1, "118.000", "cut"), (0, "nan", "0")]
    written = dmon(samples)
    if closed_up:
        # As what collects lines may write them: the columns stand no longer below their header.
        written = "\n".join(" ".join(line.split()) for line in written.splitlines())
    (tmp_path / "dmon.txt").write_text(written, encoding="utf-8")
    done = run(
        *("import", "dcgm", tmp_path / "dmon.txt", "--hardware", "H100-SXM", "--out", tmp_path / "power.yaml")
    )
    assert done == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "H100-SXM: 3 readings whose power or utilisation is not a number" in said
    text = (tmp_path / "power.yaml").read_text(encoding="utf-8")
    assert "699 W a card at full load (120 readings)" in text
    assert "120 W an idle card (120 readings)" in text


def test_dmon_asks_for_the_kind_of_its_cards_and_for_both_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "dmon.txt", tmp_path / "power.yaml"
    file.write_text(dmon([(0, "120.000", "0")] * 200), encoding="utf-8")
    assert run("import", "dcgm", file, "--out", out) == 2
    assert "--hardware" in capsys.readouterr().err
    file.write_text(dmon([(0, "120.000", "0")]).replace("GPUTL", "SMCLK"), encoding="utf-8")
    assert run("import", "dcgm", file, "--hardware", "H100-SXM", "--out", out) == 2
    assert f"{file}:1:1" in " ".join(capsys.readouterr().err.split())
    file.write_text("nothing\n", encoding="utf-8")
    assert run("import", "dcgm", file, "--out", out) == 2
    assert "contains no power readings" in " ".join(capsys.readouterr().err.split())


def test_pages_of_the_exporter_are_read_one_after_another(tmp_path: Path) -> None:
    labels = f'gpu="0",UUID="GPU-1",pci_bus_id="0",device="nvidia0",modelName="{H100}",Hostname="node-1"'
    pages = []
    for number in range(300):
        watts, percent = (698.5, 99) if number < 150 else (118.25, 0)
        pages += [
            "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).",
            "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
            f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {percent}",
            "# TYPE DCGM_FI_DEV_POWER_USAGE gauge",
            f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} {watts}",
        ]
    (tmp_path / "metrics.txt").write_text("\n".join(pages) + "\n", encoding="utf-8")
    assert run("import", "dcgm", tmp_path / "metrics.txt", "--out", tmp_path / "power.yaml") == 0
    text = (tmp_path / "power.yaml").read_text(encoding="utf-8")
    assert "698 W a card at full load (150 readings)" in text
    assert "118 W an idle card (150 readings)" in text


def test_a_card_is_one_whichever_pods_run_on_it(tmp_path: Path) -> None:
    """Dcgm-exporter adds the pod to the labels: Prometheus answers with a series for each pod of a card."""
    start = 1_795_000_000

    def parts(busy: float, idle: float) -> list[dict[str, Any]]:
        found = []
        pods = (({"pod": "a"}, 0, busy), ({}, 300, idle), ({"pod": "b"}, 600, busy))
        for labels, first, value in pods:
            each = series(0, [value] * 300, **labels)
            each["values"] = [[start + 60 * (first + n), str(value)] for n in range(300)]
            found.append(each)
        return found

    source = folder(tmp_path, answer(*parts(640.0, 71.0)), answer(*parts(99.0, 0.0)))
    assert run("import", "dcgm", source, "--out", tmp_path / "power.yaml") == 0
    text = (tmp_path / "power.yaml").read_text(encoding="utf-8")
    assert "640 W a card at full load (600 readings)" in text
    assert "71 W an idle card (300 readings)" in text
    assert "2026-11-18 to 2026-11-19: import it" in text


def test_cards_without_utilisation_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder(
        tmp_path,
        answer(series(0, [100.0] * 200), series(1, [100.0] * 200)),
        answer(series(0, [0.0] * 200)),
    )
    assert run("import", "dcgm", source, "--out", tmp_path / "power.yaml") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "1 card: H100-SXM without readings of DCGM_FI_DEV_GPU_UTIL" in said
