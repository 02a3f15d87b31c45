"""The command `plan explain`, and the output of `plan solve` for an infeasible fleet."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetplan.planner import cli
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.questions.loaded_plan import read_asked_plan

pytestmark = pytest.mark.usefixtures("plain_folders")

SCENARIO = Path(__file__).parents[3] / "scenarios" / "bring-your-own-rates"


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    """A copy of the scenario that brings its own rates: one big card and one small one are its plan."""
    for name in ("fleet.yaml", "engines.csv"):
        shutil.copy(SCENARIO / name, tmp_path / name)
    return tmp_path / "fleet.yaml"


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def failed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the output of a run that ends with a user error."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main([str(each) for each in arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def plan_file(fleet_file: Path, tmp_path: Path) -> Path:
    code, _, _ = run("solve", fleet_file, "--out", tmp_path / "out", "--set", "services.chat.headroom=0")
    assert code == 0
    return tmp_path / "out" / "plan.json"


def test_a_plan_knows_its_fleet(plan_file: Path, fleet_file: Path) -> None:
    provenance = Plan.read(plan_file).provenance
    assert provenance.fleet_file == str(fleet_file)
    assert provenance.assignments == ("services.chat.headroom=0",)
    assert set(provenance.inputs_sha256) == {"fleet.yaml", "engines.csv"}
    assert read_asked_plan(plan_file).fleet.services[0].headroom == 0


def test_a_changed_input_is_a_mistake_with_advice(
    plan_file: Path, fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = fleet_file.with_name("engines.csv")
    rates.write_text(rates.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    message = failed(capsys, "explain", plan_file, "--why-not", "small-gpu")
    assert "engines.csv has changed since; plan the fleet again" in message


def test_a_fleet_file_that_moved_can_be_named(
    plan_file: Path, fleet_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("fleet.yaml", "engines.csv"):
        shutil.move(tmp_path / name, moved / name)
    assert "--fleet FLEET.yaml names it" in failed(capsys, "explain", plan_file, "--marginal")
    code, out, _ = run("explain", plan_file, "--why-not", "disaggregated", "--fleet", moved / "fleet.yaml")
    assert code == 0
    assert "runtime disaggregated is not in the plan" in out


def test_a_plan_in_force_that_changed_is_a_mistake(
    plan_file: Path, fleet_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = run("solve", fleet_file, "--out", tmp_path / "next", "--baseline", plan_file)
    assert code == 0
    again = tmp_path / "next" / "plan.json"
    assert read_asked_plan(again).baseline == Plan.read(plan_file)
    plan_file.write_text(plan_file.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert "has changed since" in failed(capsys, "explain", again, "--marginal")


def test_what_is_used_what_is_not_and_what_a_service_runs(plan_file: Path) -> None:
    code, out, _ = run("explain", plan_file, "--why-not", "small-gpu", "--service", "chat")
    assert code == 0
    assert "hardware small-gpu is in the plan: 1 accelerator" in out
    # Two big cards for one and a small one: 7.34 against 4.68 USD/h.
    assert "without it: +$5.825 k" in out
    assert "2 candidates" in out


def test_a_plan_that_leaves_demand_is_no_cheaper_answer(fleet_file: Path, tmp_path: Path) -> None:
    """With `unmet: penalise`, a plan that leaves more demand unmet is no saving."""
    limited = ("--set", "offers.big-rent.max_accelerators=1", "--set", "policy={unmet: penalise}")
    code, _, _ = run(
        "solve", fleet_file, *limited, "--set", "services.chat.headroom=0", "--out", tmp_path / "few"
    )
    assert code == 0
    code, out, _ = run("explain", tmp_path / "few" / "plan.json", "--why-not", "small-gpu")
    assert code == 0
    assert "hardware small-gpu is in the plan" in out
    assert "without it, no plan serves everything" in out


def test_marginal_values_are_printed_written_and_drawn(plan_file: Path, tmp_path: Path) -> None:
    table, plot = tmp_path / "worth.csv", tmp_path / "worth.svg"
    code, out, _ = run("explain", plan_file, "--marginal", "--csv", table, "--plot", plot)
    assert code == 0
    # The offers have no maximum and the service no latency limit: there is nothing to have more of.
    assert table.read_text(encoding="utf-8").splitlines() == [
        "more_of,amount,unit,worth_least_usd,worth_most_usd,price_usd"
    ]
    assert plot.read_text(encoding="utf-8").startswith("<?xml")
    assert out == ("The fleet has no limits, so one more unit of any resource has no value.\n")


def test_options_that_have_nothing_to_act_on_are_refused(
    plan_file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "--plot and --csv belong to --marginal" in failed(
        capsys, "explain", plan_file, "--plot", tmp_path / "x.svg"
    )
    assert "the plan serves all demand" in failed(capsys, "explain", plan_file)
    assert "'chat'" in failed(capsys, "explain", plan_file, "--service", "chta")
    assert "is not a hardware kind, offer" in failed(capsys, "explain", plan_file, "--why-not", "nothing")


LIMITED = (
    "--set",
    "offers.small-rent.max_accelerators=0",
    "--set",
    "offers.big-rent.max_accelerators=1",
)


def test_an_infeasible_fleet_says_what_conflicts_and_what_helps(fleet_file: Path, tmp_path: Path) -> None:
    code, out, _ = run(
        "solve", fleet_file, *LIMITED, "--out", tmp_path / "out", "--set", "policy={unmet: forbid}"
    )
    assert code == 3
    assert "These 3 requirements conflict; without any one of them the others can be met together:" in out
    assert "1 big-gpu accelerator more from offer big-rent: TCO $16.07 k" in out
    outcome = Infeasible.model_validate_json((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    assert outcome.conflict is not None
    assert outcome.conflict.minimal
    assert outcome.conflict.complete
    code, again, _ = run("explain", tmp_path / "out" / "plan.json")
    assert code == 0
    assert again.strip() in out


def test_what_stands_against_hardware_is_told_without_a_plan(
    fleet_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "out" / "plan.json"
    run("solve", fleet_file, *LIMITED, "--out", tmp_path / "out", "--set", "policy={unmet: forbid}")
    _, conflict, _ = run("explain", plan)
    asked = ("--why-not", "small-rent", "--why-not", "big-gpu", "--why-not", "L40S")
    code, text, _ = run("explain", plan, *asked)
    assert code == 0
    assert text.endswith(conflict)
    assert text[: -len(conflict)].splitlines() == [
        "offer small-rent: the fleet is infeasible with it or without it",
        "  supply: its maximum is 0",
        "hardware big-gpu: the fleet is infeasible with it or without it",
        "  configurations meet the limits of: chat",
        "hardware L40S: the fleet is infeasible with it or without it",
        "  supply: no pool or offer supplies L40S",
        "  shape: chat: it has no configuration of aggregated",
    ]
    said = failed(capsys, "explain", plan, "--service", "chat", "--marginal")
    assert "--service and --marginal explain a plan, and the fleet is infeasible" in said
    assert "is not a hardware kind, offer" in failed(capsys, "explain", plan, "--why-not", "nothing")


def test_demand_that_a_plan_leaves_unserved_is_explained(fleet_file: Path, tmp_path: Path) -> None:
    code, _, _ = run(
        "solve", fleet_file, *LIMITED, "--out", tmp_path / "out", "--set", "policy={unmet: penalise}"
    )
    assert code == 0
    code, out, _ = run("explain", tmp_path / "out" / "plan.json")
    assert code == 0
    assert "1 big-gpu accelerator more from offer big-rent" in out
