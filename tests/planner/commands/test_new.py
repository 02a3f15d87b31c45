"""`plan new` and `plan schema`, shell completion, and the example in every command's help."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from pydantic import JsonValue, TypeAdapter
from tests.parts import first_of, those_with
from tests.planner.command_line import run
from tests.warm import ran
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.schema import schema_text
from fleetplan.planner.candidates.build import build_candidates
from fleetplan.planner.cli import app
from fleetplan.scenarios.load import load_fleet
from fleetplan.scenarios.presets import PRESETS, TEMPLATES

# Table 2 of Meta, "Optimizing Deployment Configurations for LLM Inference": tokens in, tokens out, context,
# TTFT and TTIT in ms, each from and to; None where the table says "few", "few seconds" or nothing.
Range = tuple[float, float]
TABLE_2: dict[str, tuple[Range, Range | None, Range | None, Range | None, Range | None]] = {
    "text-agent": ((500, 2000), (100, 500), (0, 128_000), (200, 500), (0, 40)),
    "multi-modal-agent": ((500, 2000), (100, 500), (0, 128_000), (300, 800), (0, 40)),
    "real-time-agent": ((0, 50), (50, 100), (0, 32_000), (0, 200), (0, 30)),
    "safety": ((0, 8000), None, None, (0, 200), None),
    "query-generation": ((0, 8000), (100, 500), None, (0, 200), (0, 10)),
    "data-augmentation": ((0, 8000), (0, 1000), (0, 32_000), None, (0, 300)),
    "data-scoring": ((0, 32_000), None, None, None, None),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(path: str = "fleet.yaml") -> Fleet:
    fleet = load_fleet(Path(path))
    assert fleet.warnings == ()
    return fleet


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_passes_plan_check(template: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("new", "my.yaml", "--template", template) == 0
    assert "my.yaml; try: plan check my.yaml" in capsys.readouterr().err
    assert run("check", "my.yaml") == 0
    assert "my is valid" in capsys.readouterr().out
    text = Path("my.yaml").read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=fleet.schema.json\n# ")
    assert "FILE.yaml" not in text
    assert text.count("#") >= 8


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_commands_in_a_template_load(template: str) -> None:
    assert run("new", "my fleet.yaml", "--template", template) == 0
    text = Path("my fleet.yaml").read_text("utf-8")
    used = re.findall(r"-s ([\w-]+)", text)
    block = load_fleet(Path("my fleet.yaml"), used, ())
    assert block.services
    assert "plan 'my fleet.yaml'" in text or not used


@pytest.mark.parametrize("template", those_with(TEMPLATES, "quarterly".__eq__))
def test_every_preset_can_be_served_in_every_template(template: str) -> None:
    arguments = [word for preset in PRESETS for word in ("--preset", preset)]
    assert run("new", "fleet.yaml", "--template", template, *arguments) == 0
    fleet = loaded()
    assert [service.name for service in fleet.services] == list(PRESETS)
    found = build_candidates(fleet, lambda _: None)
    assert {each.service for each in found.candidates} == set(PRESETS)
    assert max(len(line) for line in Path("fleet.yaml").read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_lies_within_the_ranges_of_the_paper(preset: str) -> None:
    assert run("new", "fleet.yaml", "--preset", preset, "--name", "review") == 0
    assert "Table 2 of Meta" in Path("fleet.yaml").read_text("utf-8")
    fleet = loaded()
    assert fleet.name == "review"
    (service,) = fleet.services
    (kind,) = service.classes
    values = (kind.input_tokens, kind.output_tokens, kind.context_tokens, service.ttft_ms, service.tpot_ms)
    for value, limits in zip(values, TABLE_2[preset], strict=True):
        if limits is not None:
            assert value is not None
            assert limits[0] <= value <= limits[1]
    # A limit that the table does not set is not made up; a few seconds are three.
    assert (service.ttft_ms is None) == (preset == "data-scoring")
    assert (service.tpot_ms is None) == (TABLE_2[preset][4] is None)


def test_demand_of_a_preset_follows_the_regions_and_periods_of_the_template() -> None:
    assert run("new", "fleet.yaml", "--template", "quarterly", "--preset", "text-agent") == 0
    (service,) = loaded().services
    assert service.demand.peak["us-east", "2027Q1", "all"] == 10
    assert service.demand.peak["eu-west", "2027Q3", "all"] == pytest.approx(12)


@pytest.mark.parametrize("name", ["true", "a: b", 'quo"ted', "#1", "flotte-für-2027", "{x}", r"back\slash"])
def test_any_name_that_prints_stays_that_name(name: str) -> None:
    assert run("new", "fleet.yaml", "--name", name) == 0
    assert loaded().name == name


def test_a_preset_named_twice_is_one_service() -> None:
    assert run("new", "fleet.yaml", "--preset", "safety", "--preset", "safety") == 0
    assert len(loaded().services) == 1


def test_existing_files_are_left_alone_unless_forced(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("fleet.yaml", "fleet.schema.json"):
        Path(name).write_text("mine", encoding="utf-8")
    assert run("new", "fleet.yaml") == 2
    assert capsys.readouterr().err == "fleet.yaml: the file already exists; --force overwrites it\n"
    assert run("new", "other.yaml") == 0
    for name in ("fleet.yaml", "fleet.schema.json"):
        assert Path(name).read_text("utf-8") == "mine"
    assert run("new", "fleet.yaml", "--force") == 0
    assert loaded().name == "fleet"
    assert Path("fleet.schema.json").read_text("utf-8") == schema_text()
    # Nothing is left of the files that were renamed.
    assert sorted(path.name for path in Path().iterdir()) == ["fleet.schema.json", "fleet.yaml", "other.yaml"]


def test_a_link_to_nowhere_is_a_file_too() -> None:
    Path("fleet.yaml").symlink_to("elsewhere.yaml")
    assert run("new", "fleet.yaml") == 2
    assert not Path("elsewhere.yaml").exists()


def test_a_file_system_without_links_is_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert run("new", "fleet.yaml") == 0
    assert run("new", "fleet.yaml") == 2
    assert loaded().services


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["a.yaml", "--template", "tinny"],
            "--template: there is no template 'tinny'; allowed: tiny, hetero, ",
        ),
        (["a.yaml", "--preset", "text_agents"], "did you mean 'text-agent'?"),
        (["a.yaml", "--name", " "], "--name: ' ' is not a name; use one or more printable characters"),
        (["a.yaml", "--name", "a\nversion: 2"], r"--name: 'a\nversion: 2' is not a name"),
        (["a\nb.yaml"], r"'a\nb.yaml' is not a name"),
        (["a.json"], "a.json: a fleet file ends in .yaml; name it a.yaml"),
        (["gone/a.yaml"], "gone/a.yaml: cannot be written: No such file or directory"),
    ],
)
def test_mistakes(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("new", *arguments) == 2
    assert expected in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_plan_schema_prints_the_schema_and_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schema") == 0
    printed = capsys.readouterr().out
    Draft7Validator.check_schema(TypeAdapter(dict[str, JsonValue]).validate_json(printed))
    assert printed == schema_text()
    for _ in range(2):
        assert run("schema", "--out", "s.json") == 0
        assert Path("s.json").read_text("utf-8") == printed


def commands() -> list[tuple[str, TyperCommand]]:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    found: list[tuple[str, TyperCommand]] = []
    for name, command in root.commands.items():
        below = command.commands.items() if isinstance(command, TyperGroup) else ()
        found += [(f"{name} {key}", each) for key, each in below if isinstance(each, TyperCommand)]
        if isinstance(command, TyperCommand):
            found.append((name, command))
    return found


@pytest.mark.parametrize(("name", "command"), first_of(commands(), 12), ids=[name for name, _ in commands()])
def test_every_help_has_an_example_that_parses(name: str, command: TyperCommand) -> None:
    text = " ".join((command.help or "").split())
    _, found, examples = text.partition("Example")
    assert found, f"plan {name} --help has no example"
    for line in examples.removeprefix("s").removeprefix(":").split(";"):
        plan, *words = shlex.split(line)
        assert plan == "plan"
        own = name.split()
        # `plan FLEET.yaml` is short for `plan solve FLEET.yaml`.
        assert words[: len(own)] == own or name == "solve"
        words = words[len(own) :] if words[: len(own)] == own else words
        assert command.make_context(name, words).params


def completed(script: str, line: str) -> str:
    """Return the shell completions at the end of a line."""
    environment = {
        **os.environ,
        f"_{script.upper()}_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    return call(script, [], environment)


def call(script: str, arguments: list[str], environment: dict[str, str]) -> str:
    """Run the command line under a script name, as the installed scripts do."""
    code = f"import sys; sys.argv[0] = {script!r}; from fleetplan.planner.cli import main; main()"
    source = str(Path(__file__).parents[3] / "src")
    done = ran(["-c", code, *arguments], env={**environment, "PYTHONPATH": source}, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("script", first_of(("plan", "fleetplan"), 1))
def test_completion_under_the_script_name(script: str) -> None:
    # Typer asks which shell it runs in unless told not to; a test runs in none.
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = call(script, ["--show-completion", "bash"], environment)
    assert f"_{script.upper()}_COMPLETE=complete_bash" in shown
    assert shown.rstrip().endswith(f" {script}")
    assert completed(script, f"{script} sch").split() == ["schema"]
    assert completed(script, f"{script} new f.yaml --preset da").split() == [
        "data-augmentation",
        "data-scoring",
    ]
    assert completed(script, f"{script} new f.yaml --template ").split() == list(TEMPLATES)


def test_the_installed_scripts_have_those_names() -> None:
    scripts = (Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8")
    assert 'plan = "fleetplan.planner.start:main"' in scripts
    assert 'fleetplan = "fleetplan.planner.start:main"' in scripts
