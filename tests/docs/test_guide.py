"""Every command of the user guide runs, page by page in an empty folder, and every link leads somewhere."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.planner.export.cluster_plans import of_catalogue
from tests.planner.export.launched_plans import plan
from tests.planner.importing.benchmark_results import VLLM
from tests.planner.importing.cloud_price_lists import azure_item
from tests.planner.importing.cluster_nodes import NODES, SINFO
from tests.planner.importing.prometheus_answers import saved
from tests.planner.importing.supply_offers import BILL, SKYPILOT
from tests.planner.importing.test_benchmark_formats import MLPERF
from tests.planner.importing.test_power_readings import answer as power_answer
from tests.planner.importing.test_power_readings import series
from tests.planner.importing.test_supply_tables import INVENTORY, PRICES

from fleetplan.planner import cli
from fleetplan.planner.cli import main
from fleetplan.planner.plan.document import FORMAT_VERSION
from fleetplan.scenarios.load import load_fleet

DOCS = Path(__file__).parents[2] / "docs"

PAGES = ("first-ten-minutes.md", "reading-a-plan.md", "finance.md", "formats.md")


def commands(page: str) -> list[list[str]]:
    """Commands of the shell blocks of a page."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventory.csv").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "prices.csv").write_text(PRICES, encoding="utf-8")
    (tmp_path / "result.json").write_text(json.dumps(VLLM), encoding="utf-8")
    (tmp_path / "nodes.json").write_text(json.dumps(NODES), encoding="utf-8")
    (tmp_path / "sinfo.json").write_text(json.dumps(SINFO), encoding="utf-8")
    (tmp_path / "vms.csv").write_text(SKYPILOT, encoding="utf-8")
    prices = {"Items": [azure_item("Standard_ND96isr_H100_v5", 98.32)]}
    (tmp_path / "azure.json").write_text(json.dumps(prices), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(BILL), tmp_path / "billing.parquet")
    (tmp_path / "saved").mkdir()
    for name, text in saved().items():
        (tmp_path / "saved" / f"{name}.json").write_text(text, encoding="utf-8")
    written = of_catalogue(plan()).model_dump_json()
    for region, name in (("here", "us-east"), ("there", "europe-west4")):
        written = written.replace(json.dumps(region), json.dumps(name))
    shutil.copy(MLPERF, tmp_path / "mlperf_log_summary.txt")
    (tmp_path / "saved" / "power.json").write_text(power_answer(series(0, [100.0] * 200)), encoding="utf-8")
    (tmp_path / "saved" / "utilisation.json").write_text(
        power_answer(series(0, [0.0] * 200)), encoding="utf-8"
    )
    (tmp_path / "plan.json").write_text(written, encoding="utf-8")
    found = commands(page)
    assert found
    for program, *arguments in found:
        assert program == "plan"
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert not ended.value.code, f"{' '.join(arguments)}: {capsys.readouterr().err}"


def test_the_python_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS.parent / "scenarios" / "tiny.yaml", tmp_path / "fleet.yaml")
    (code,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "python.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    exec(compile(code, "python.md", "exec"), {})
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_lead_to_files_that_exist(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        # The pictures of the gallery are drawn when the site is built, which fails without one of them.
        if not target.startswith(("http", "gallery/")):
            assert (DOCS / target).exists(), target


def test_the_index_names_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for path in DOCS.glob("*.md"):
        assert path.name == "index.md" or f"({path.name})" in index, path.name


def written_commands() -> list[tuple[str, str]]:
    """Every `plan ...` line of the pages and the README: in blocks of code, and indented."""
    pages = [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md"]
    found = []
    for path in pages:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
        lines = [line for block in blocks for line in block.splitlines()]
        lines += re.findall(r"^ {4}(plan .*)", text, flags=re.MULTILINE)
        found += [(path.name, line.split("#")[0].strip()) for line in lines if line.startswith("plan ")]
    return found


def test_every_option_that_a_page_names_exists() -> None:
    root = cli._program()
    assert len(written_commands()) > 30
    for page, line in written_commands():
        words = line.split()[1:]
        command = root
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        if command is root and not words[0].startswith("-"):
            assert words[0].endswith((".yaml", ".yml")), f"{page}: there is no command in {line!r}"
            command = root.commands["solve"]  # type: ignore[attr-defined]
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        known |= {"--install-completion", "--show-completion"}
        used = {word.split("=")[0] for word in words if word.startswith("--")}
        assert used <= known, f"{page}: {line!r} has {', '.join(sorted(used - known))}"


def test_the_readme_changes_values_that_its_new_file_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line.split() for page, line in written_commands() if page == "README.md"]
    (new,) = (words for words in lines if words[1] == "new")
    with pytest.raises(SystemExit) as ended:
        main(new[1:])
    assert not ended.value.code
    changing = [words for words in lines if "--set" in words]
    assert changing
    for words in changing:
        after = dict(pairwise(words))
        assert load_fleet(Path(words[1]), [after["-s"]], [after["--set"]]).services


def test_a_broken_link_fails_the_site() -> None:
    """A strict build counts the warnings that MkDocs logs, and with --quiet it logs none."""
    root = Path(__file__).parents[2]
    (build,) = [
        line for line in (root / "Makefile").read_text("utf-8").splitlines() if "mkdocs build" in line
    ]
    assert "--quiet" not in build
    assert "exit 1" in build
    settings = (root / "mkdocs.yml").read_text("utf-8").splitlines()
    assert {"strict: true", "validation: {anchors: warn}"} <= set(settings)


def test_the_release_notes_and_the_citation_are_of_this_release() -> None:
    root = DOCS.parent
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    notes = (DOCS / "release-notes.md").read_text("utf-8")
    assert f"\n## {project['version']}\n" in notes
    assert f"\nversion: {project['version']}\n" in (root / "CITATION.cff").read_text("utf-8")
    assert f"format {FORMAT_VERSION};" in notes
    for extra in set(project["optional-dependencies"]) - {"dev", "docs"}:
        assert f"[{extra}]" in notes
    (tables,) = (each for each in project["dependencies"] if each.startswith("aiconfigurator-core"))
    assert f"`aiconfigurator-core` {tables.partition('==')[2].partition(';')[0]}" in notes
    found = re.search(r"\| any part \| ([\d.]+) / ([\d.]+) \(", (DOCS / "accuracy.md").read_text("utf-8"))
    assert found is not None
    median, most = (f"{float(each):.0f} %" for each in found.groups())
    assert f"{median} in the median and {most} at the 90th percentile" in notes
