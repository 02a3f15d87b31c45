"""Every writer with names that are markup, formulas, shell or templates: they come out as text alone."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import openpyxl
import pytest

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.printable import steering_character
from fleetplan.planner import cli
from fleetplan.planner.cells import SPREADSHEET_TRIGGERS
from tests.cache_home import own_cache_home
from tests.faults.fleets import with_landscape
from tests.interop.documents import read_all_yaml

NAMES = {
    "markup": "<script>alert(1)</script>",
    "attribute": "\"'><svg/onload=alert(1)>",
    "formula": '=HYPERLINK("http://example.org/"&A1)',
    "sum": "@SUM(A1:A9)",
    "minus": "-2+3",
    "substitution": "$(touch${IFS}pwned)",
    "backticks": "`touch${IFS}pwned`",
    "command": "';touch${IFS}pwned;'",
    "quote": '";touch${IFS}pwned;"',
    "template": "{{7*7}}{%print(1)%}",
    "path": "../../pwned",
    "format": "%s%n{0}",
    "tag": "!!python/object/apply:os.system",
}
"""Names that the schema takes: without spaces, commas and brackets."""

CHECKPOINT = "'$(touch${IFS}pwned)'/`touch${IFS}pwned`"
"""What is launched for the first service; llm-d takes names of a hub alone, as the second service has."""

FORMATS = ("launch", "dynamo", "llm-d", "node-pools", "purchases", "workbook")


def run(*arguments: object, allowed: tuple[int, ...] = (0,)) -> None:
    """Run a command in this process."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(each) for each in arguments])
    assert (ended.value.code or 0) in allowed, arguments


def _fleet(folder: Path) -> Path:
    """A small fleet in which every name is hostile."""
    path = with_landscape(folder)
    file = read_yaml(path.read_text())
    names = iter(NAMES.values())
    service, region, part, pool, offer, first, second = (next(names) for _ in range(7))
    scenarios, kinds, slices = (
        [next(names), next(names)],
        [next(names), next(names)],
        [next(names), next(names)],
    )
    file["hardware"] = {part: file["hardware"]["gpu"] | {"accelerators_per_host": 4, "vendor": "NVIDIA"}}
    file["regions"] = {
        region: {"pue": 1.2, "energy_usd_per_kwh": 0.1, "grid_kg_co2_per_kwh": 0.3, "power_kw": 900}
    }
    file["horizon"] = {
        "periods": [first, second],
        "slices": [{"name": slices[0], "hours": 10}, {"name": slices[1], "hours": 14}],
    }
    file["pools"] = [
        {"name": pool, "hardware": part, "hosts": 1, "rented": {"usd_per_accelerator_hour": 1.0}}
    ]
    file["offers"] = [{"name": offer, "hardware": part, "rent_usd_per_accelerator_hour": 2.0}]
    file["uncertainty"] = {
        "scenarios": [
            {"name": each, "probability": 0.5, "demand_ratio": ratio}
            for each, ratio in zip(scenarios, (1, 1.5), strict=True)
        ]
    }
    (chat,) = file["services"]
    work = chat.pop("workload")
    by_kind = {kind: {"share": 0.5, **work} for kind in kinds}
    file["services"] = [
        chat | {"name": service, "workload": {"classes": by_kind}, "demand": 5000, "checkpoint": CHECKPOINT},
        chat | {"name": NAMES["tag"] + "2", "workload": work, "demand": 5, "checkpoint": "org/model"},
    ]
    path.write_text(yaml_text(file), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that is written of one plan."""
    folder = tmp_path_factory.mktemp("hostile")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(own_cache_home(folder / "cache"))
    here = Path.cwd()
    work = folder / "work"
    work.mkdir()
    os.chdir(work)
    try:
        fleet = _fleet(folder / "fleet")
        run("solve", fleet, "--out", folder / "out", "--gap", "5%", allowed=(0, 4))
        plan = folder / "out" / "plan.json"
        for each in FORMATS:
            run("export", plan, "--as", each, "--out", folder / each)
        run("dump", fleet, "--out", folder / "dump")
        run("landscape", fleet, "--service", NAMES["markup"], "--csv", folder / "landscape.csv")
        run("diff", plan, plan)
        run("explain", plan, "--service", NAMES["markup"], allowed=(0, 2))
        run(
            "sweep", fleet, "--grid", "demand=1,1.1", "--gap", "5%", "--out", folder / "sweep", allowed=(0, 4)
        )
    finally:
        os.chdir(here)
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
    return folder


class _Page(HTMLParser):
    """A page as a browser parses it."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "base"):
            self.faults.append(tag)
        for name, value in attrs:
            outside = name in ("href", "src", "action") and not (value or "").startswith(("#", "data:"))
            if name.startswith("on") or outside:
                self.faults.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_shows_names_as_text(written: Path) -> None:
    page = _Page()
    page.feed((written / "out" / "report.html").read_text(encoding="utf-8"))
    assert page.faults == []
    words = " ".join(page.words)
    for name in ("markup", "attribute", "formula", "sum", "minus"):
        assert NAMES[name] in words, name


def test_no_cell_of_a_workbook_is_made_of_a_name(written: Path) -> None:
    books = [*written.rglob("*.xlsx")]
    assert len(books) >= 2
    for path in books:
        for sheet in openpyxl.load_workbook(path).worksheets:
            cells = [cell for row in sheet.iter_rows() for cell in row if cell.value is not None]
            assert all(cell.hyperlink is None for cell in cells)
            for cell in cells:
                if cell.data_type == "f":
                    assert not any(name in str(cell.value) for name in NAMES.values()), cell.value


def test_no_cell_of_a_table_is_a_formula(written: Path) -> None:
    tables = [*written.rglob("*.csv")]
    tables = [each for each in tables if not each.is_relative_to(written / "fleet")]
    assert len(tables) >= 5
    for path in tables:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                for cell in row:
                    number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?|[-+]?inf|nan", cell)
                    assert number or not cell.startswith(SPREADSHEET_TRIGGERS), (path, cell)


def test_scripts_run_none_of_the_names(written: Path, tmp_path: Path) -> None:
    scripts = [*written.rglob("*.sh")]
    assert scripts
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for name in ("vllm", "python", "python3", "trtllm-serve"):
        (stubs / name).write_text("#!/bin/sh\nexit 0\n")
        (stubs / name).chmod(0o755)
    for path in scripts:
        subprocess.run(["bash", "-n", path], check=True)
        place = tmp_path / "run"
        place.mkdir(exist_ok=True)
        environment = {"PATH": f"{stubs}:/usr/bin:/bin", "HOME": str(place)}
        subprocess.run(
            ["bash", path], cwd=place, env=environment, capture_output=True, check=False, timeout=20
        )
        assert [*place.rglob("pwned*")] == []


def test_manifests_are_plain_documents_of_valid_names(written: Path) -> None:
    manifests = [each for name in ("dynamo", "llm-d") for each in (written / name).rglob("*.yaml")]
    assert manifests
    for path in manifests:
        for document in read_all_yaml(path.read_text(encoding="utf-8")):
            for name in _names(document):
                assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", name), (path, name)


def _names(document: object) -> list[str]:
    """Names of Kubernetes objects."""
    if not isinstance(document, dict):
        return []
    metadata = document.get("metadata")
    own = [str(metadata["name"])] if isinstance(metadata, dict) and "name" in metadata else []
    return own + [name for value in document.values() for name in _names(value)]


def test_no_name_leaves_its_folder(written: Path) -> None:
    assert [*written.parent.rglob("pwned*")] == []
    assert [each for each in written.rglob("*") if "pwned" in each.name] == []
    assert [*(written / "work").iterdir()] == []


def test_no_file_of_text_steers_a_terminal(written: Path) -> None:
    for path in written.rglob("*"):
        if path.suffix in (".csv", ".json", ".yaml", ".sh", ".md", ".html", ".txt"):
            assert steering_character(path.read_text(encoding="utf-8")) is None, path


@pytest.mark.parametrize("text", ["\x1b[31mred", "\x07", "\x9b2J", "a\x08b", "\u202egnp", "\x7f"])
def test_names_that_steer_a_terminal_are_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_landscape(tmp_path)
    file = read_yaml(path.read_text())
    file["services"][0]["name"] = f"chat{text}"
    path.write_text(yaml_text(file), encoding="utf-8")
    run("check", path, allowed=(2,))
    said = capsys.readouterr()
    assert "is not allowed" in said.err
    assert steering_character(said.err) is None


def test_the_terminal_shows_names_as_text(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("explain", written / "out" / "plan.json", allowed=(0, 2))
    run("diff", written / "out" / "plan.json", written / "out" / "plan.json")
    said = capsys.readouterr()
    assert steering_character(said.out + said.err) is None
