"""Counterfactual fleets of `plan compare --against`, defined by the candidates they keep.

A counterfactual restricts the configurations. Demand, prices, pools, offers, policy and limits stay;
installed hardware keeps its fixed cost even if nothing may run on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleetplan.fleet.catalog.hardware_names import hardware_called
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import supplied_hardware
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, ConfigurationKey, Phase
from fleetplan.planner.problem.current_plan import configurations_in_force

HOMOGENEOUS: Final = "homogeneous"
NO_DISAGGREGATION: Final = "no-disaggregation"
SINGLE_VENDOR: Final = "single-vendor"
WITHOUT: Final = "without:"
PLAN_SUFFIX: Final = ".json"

Keeps = Callable[[Candidate], bool]
"""Predicate for candidates that stay."""


@dataclass(frozen=True, slots=True)
class FleetOption:
    """One of the alternative fleets of a counterfactual, which is the cheapest of them.

    Attributes
    ----------
    label : str
        Text that distinguishes the option, such as the hardware; empty for an only option.
    keeps : callable
        Predicate for candidates that may run.
    """

    label: str
    keeps: Keeps


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A fleet to compare the plan with.

    Attributes
    ----------
    name : str
        Name as given by the user.
    definition : str
        Definition in one sentence.
    options : tuple[FleetOption, ...]
        Options, of which the cheapest feasible one counts.
    fleet : Fleet or None
        Fleet of a scenario; None for the fleet of the plan.
    configurations : frozenset[ConfigurationKey]
        Configurations that stay candidates even if dominated.
    """

    name: str
    definition: str
    options: tuple[FleetOption, ...]
    fleet: Fleet | None = None
    configurations: frozenset[ConfigurationKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Sources:
    """Access to scenarios and plan files named as counterfactuals.

    Attributes
    ----------
    scenarios : tuple[str, ...]
        Scenario names in the fleet file.
    load_scenario : callable
        Returns the fleet of a scenario.
    read_plan : callable
        Returns the plan in a file.
    """

    scenarios: tuple[str, ...]
    load_scenario: Callable[[str], Fleet]
    read_plan: Callable[[Path], Plan]


def counterfactual(text: str, fleet: Fleet, sources: Sources) -> Counterfactual:
    """Return the counterfactual that the text of `--against` names.

    Parameters
    ----------
    text : str
        homogeneous, no-disaggregation, single-vendor, without:HARDWARE, a plan file, or a scenario.
    fleet : Fleet
        Fleet of the plan.
    sources : Sources
        Access to scenarios and plan files.

    Raises
    ------
    InputError
        The text names no counterfactual.
    """
    rules = {
        HOMOGENEOUS: _homogeneous,
        NO_DISAGGREGATION: _no_disaggregation,
        SINGLE_VENDOR: _single_vendor,
    }
    if text in rules:
        return rules[text](fleet)
    if text.startswith(WITHOUT):
        return _without(text, fleet)
    if text.endswith(PLAN_SUFFIX):
        return _of_plan(text, sources.read_plan(Path(text)))
    if text in sources.scenarios:
        return _of_scenario(text, sources.load_scenario(text))
    known = (*rules, *(f"{WITHOUT}{name}" for name in supplied_hardware(fleet)), *sources.scenarios)
    hint = f"a plan file ends with {PLAN_SUFFIX}; otherwise {names_hint(text, known)}"
    raise _mistake(text, "is not a rule, a scenario of the fleet file or a plan file", hint)


def _homogeneous(fleet: Fleet) -> Counterfactual:
    definition = (
        "one hardware kind for the whole fleet, in every service, phase and region: the cheapest feasible "
        "kind among those of pools and offers"
    )
    options = [FleetOption(name, _on_hardware(frozenset([name]))) for name in supplied_hardware(fleet)]
    return Counterfactual(HOMOGENEOUS, definition, tuple(options))


def _single_vendor(fleet: Fleet) -> Counterfactual:
    by_vendor: dict[str, set[str]] = {}
    for name in supplied_hardware(fleet):
        part = fleet.hardware[name].accelerator
        if part is None:
            hint = f"set hardware.{name}.vendor"
            raise _mistake(SINGLE_VENDOR, f"the vendor of {name} is not known", hint)
        by_vendor.setdefault(part.vendor, set()).add(name)
    definition = "all hardware from one vendor: the cheapest feasible vendor"
    options = [FleetOption(vendor, _on_hardware(frozenset(names))) for vendor, names in by_vendor.items()]
    return Counterfactual(SINGLE_VENDOR, definition, tuple(options))


def _no_disaggregation(_: Fleet) -> Counterfactual:
    definition = "aggregated runtimes only: each replica runs prefill and decode"
    option = FleetOption("", lambda candidate: candidate.phase is Phase.AGGREGATED)
    return Counterfactual(NO_DISAGGREGATION, definition, (option,))


def _without(text: str, fleet: Fleet) -> Counterfactual:
    supplied = supplied_hardware(fleet)
    name = hardware_called(text.removeprefix(WITHOUT), supplied)
    if name not in supplied:
        raise _mistake(text, f"no pool or offer supplies {name!r}", names_hint(name, supplied))
    option = FleetOption("", _on_hardware(frozenset(supplied) - {name}))
    return Counterfactual(text, f"nothing runs on {name}, whether owned or rented", (option,))


def _of_plan(text: str, plan: Plan) -> Counterfactual:
    kept = configurations_in_force(plan)
    definition = "only the configurations in this plan, in any region and number"
    option = FleetOption("", lambda candidate: candidate.key in kept)
    return Counterfactual(text, definition, (option,), configurations=kept)


def _of_scenario(text: str, fleet: Fleet) -> Counterfactual:
    definition = "the fleet file with this scenario, including its demand and prices"
    return Counterfactual(text, definition, (FleetOption("", lambda _: True),), fleet=fleet)


def _on_hardware(names: frozenset[str]) -> Keeps:
    return lambda candidate: candidate.hardware in names


def _mistake(text: str, message: str, hint: str) -> InputError:
    return InputError([Issue(f"--against {text}", 0, 0, "", message, hint)])
