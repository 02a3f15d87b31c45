"""README and reference agree with the program: commands, paths, the example fleet, the schema's keys."""

import importlib.util
import re
from pathlib import Path

import pytest

from fleetplan.planner.api import plan_fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_make_targets_that_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    lines = re.findall(r"^make ([a-z ]+)", README, flags=re.MULTILINE)
    used = {target for line in lines for target in line.split()}
    assert {"plan", "test"} <= used
    assert used <= targets


def test_the_readme_names_commands_that_exist() -> None:
    from fleetplan.planner import cli  # noqa: PLC0415 - the only test here that needs the command line

    commands = set(cli._program().list_commands(None))  # type: ignore[attr-defined]
    words = re.findall(r"^plan ([a-z]+) ", README, flags=re.MULTILINE)
    assert words
    assert set(words) <= commands


def test_the_readme_names_files_that_exist() -> None:
    paths = re.findall(r"\b(?:scenarios|docs|planner|fleet|perfmodel)/[\w./-]*\w", README)
    assert paths
    for path in paths:
        assert (REPOSITORY / path).exists(), path


def test_the_fleet_in_the_readme_is_planned(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    path = tmp_path / "my.yaml"
    path.write_text(block, encoding="utf-8")
    fleet = load_fleet(path)
    assert fleet.warnings == ()
    planned = plan_fleet(fleet, SearchLimits(20.0, 0.01, seed=1, workers=2))
    assert isinstance(planned.outcome, Plan)
    assert planned.outcome.gap <= 0.01


@pytest.mark.parametrize(
    ("script", "function", "page"),
    [
        ("generate_reference", "reference", "fleet-yaml.md"),
        ("generate_catalogue", "page", "models-and-hardware.md"),
    ],
)
def test_a_generated_page_is_up_to_date(script: str, function: str, page: str) -> None:
    spec = importlib.util.spec_from_file_location(script, REPOSITORY / "docs" / f"{script}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    assert getattr(module, function)() == written, f"run: python docs/{script}.py"
