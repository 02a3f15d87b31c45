"""Solve a formulation in the order that the documentation states: unmet demand, the goal, then cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.oracles.independent import money
from tests.oracles.independent.formulation import Formulation, Mode
from tests.oracles.independent.program import Program, Solved, Terms, UnsolvedError
from tests.oracles.independent.reading import read_facts
from tests.oracles.independent.rows_supply import installed_units

COST = "cost"
SERVED, ENERGY, ACCELERATORS = "served", "energy", "accelerators"

STAGE_SLACK = 1e-7
"""What a later stage may lose of an earlier one, over the figure reached: far above HiGHS's tolerance of a
row, far below any step of a figure of the fleets that are compared."""


@dataclass(frozen=True)
class Stage:
    """Minimised figure of a stage: `value` is reached, and no solution is below `bound`."""

    name: str
    value: float
    bound: float


@dataclass(frozen=True)
class Answer:
    """The stages in their order; none where the fleet cannot be served."""

    stages: tuple[Stage, ...]


def answer(path: Path, *, mode: str, caps: Mapping[str, float], time_limit_s: float) -> Answer:
    """Solve a fleet file.

    Parameters
    ----------
    path : Path
        The fleet file.
    mode : str
        A value of `Mode`: what whole load units may make of a limit.
    caps : Mapping[str, float]
        Figures of stages that are not minimised but kept below the figure.
    time_limit_s : float
        Wall time of all stages together. [s]

    Raises
    ------
    UnsolvedError
        If the time does not suffice.
    """
    model = Formulation(read_facts(path), Mode(mode))
    model.state()
    ends = time.monotonic() + time_limit_s
    reached: list[Stage] = []
    for name, terms, offset in _stages(model):
        if name in caps:
            model.program.at_most(f"cap[{name}]", terms, caps[name] - offset)
            continue
        found = _minimise(model.program, terms, offset, ends)
        if found is None and caps:
            return Answer(())
        if found is None and reached:
            raise UnsolvedError(f"{name}: infeasible after {reached[-1].name}")
        if found is None:
            return Answer(())
        reached.append(Stage(name, found.value, found.bound))
        if terms:
            slack = STAGE_SLACK * max(1.0, abs(found.value))
            model.program.at_most(f"reached[{name}]", terms, found.value - offset + slack)
    return Answer(tuple(reached))


def _minimise(program: Program, terms: Terms, offset: float, ends: float) -> Solved | None:
    return program.minimise(terms, offset, max(ends - time.monotonic(), 1.0))


def _stages(model: Formulation) -> list[tuple[str, Terms, float]]:
    """Return the stages in order: name, terms and constant."""
    stages: list[tuple[str, Terms, float]] = []
    if model.facts.objective == SERVED:
        stages.append((SERVED, *_served(model)))
    elif model.facts.policy.unmet:
        stages += _unmet(model)
    if model.facts.objective == ENERGY:
        stages.append((ENERGY, *_energy(model)))
    if model.facts.objective == ACCELERATORS:
        stages.append((ACCELERATORS, _accelerators(model), 0.0))
    stages.append((COST, model.cost(), model.fixed.total))
    return stages


def _unmet(model: Formulation) -> list[tuple[str, Terms, float]]:
    """Unmet demand of each priority, headroom included, by probability and hours. [requests/s]"""
    found = []
    for priority in sorted({service.priority for service in model.facts.services}):
        terms: Terms = {
            key: model.moments[key[2]].weight
            for key in model.program.index
            if isinstance(key, tuple)
            and key[0] == "unmet"
            and model.facts.services[key[1]].priority == priority
        }
        found.append((unmet_stage(priority), terms, 0.0))
    return found


def unmet_stage(priority: int) -> str:
    """Name of the stage of a priority."""
    return f"unmet{priority}"


def _served(model: Formulation) -> tuple[Terms, float]:
    """Minus what is served, each request with its weight, the mean of the periods. [requests/s]"""
    terms: Terms = {}
    offset, periods = 0.0, len(model.facts.periods)
    for s, service in enumerate(model.facts.services):
        for cell in service.demand:
            m = model.moments.index(cell[1])
            weight = service.served_weight * cell[1].weight / periods
            offset -= weight * service.demand[cell]
            key = ("unmet", s, m, cell[0], cell[2])
            if key in model.program.index:
                terms[key] = weight / (1 + service.headroom)
    return terms, offset


def _energy(model: Formulation) -> tuple[Terms, float]:
    """Return the facility energy of served traffic and of all installed hardware. [kWh]"""
    terms: Terms = {}
    for key, path in model.paths.items():
        moment, service = model.moments[path.moment], model.facts.services[path.service]
        hours = money.hours(model.facts) * moment.weight / (1 + service.headroom)
        terms[key] = sum(
            model.busy_kw(model.engine(spot))
            / model.engine(spot).rates[path.name]
            * model.facts.places[path.there].pue
            * hours
            for spot in path.spots
        )
    offset = 0.0
    for p, pool in enumerate(model.pools):
        kw = model.facts.parts[pool.part].idle_w * pool.unit / money.WATTS_PER_KW
        unit_kwh = kw * model.facts.places[pool.region].pue * money.hours(model.facts)
        for q in range(len(model.facts.periods)):
            units, columns = installed_units(model, p, q)
            offset += units * unit_kwh
            for key, sign in columns.items():
                terms[key] = terms.get(key, 0.0) + sign * unit_kwh
    return terms, offset


def _accelerators(model: Formulation) -> Terms:
    """Accelerators that run, whole units where a replica takes them, the mean of the periods."""
    terms: Terms = {}
    for spot in model.carried:
        size, unit = model.engine(spot).size, model.pools[spot[2]].unit
        taken = size if size <= unit else -(-size // unit) * unit
        moment = model.moments[spot[3]]
        terms["replicas", spot] = taken * moment.weight / len(model.facts.periods)
    return terms
