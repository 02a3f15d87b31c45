"""Write the tables of `plan dump` between the fleet file and the solver, and the model itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pandas as pd

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import FileNotWrittenError, write_whole, written_together
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import CandidateSet, prepare
from fleetplan.planner.cells import as_text
from fleetplan.planner.formulation import build_model
from fleetplan.planner.problem import Problem

MODEL_FILE: Final = "model.txtpb"
"""Text form of the CP-SAT model: named variables and rows, with TCO as the objective."""


def write_dump(
    fleet: Fleet,
    folder: Path,
    announce: Callable[[str], None],
    out_of_time: Callable[[], bool] = lambda: False,
) -> list[Path]:
    """Write the tables and the model of a fleet, without solving.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    folder : Path
        Output folder; created if it does not exist.
    announce : callable
        Receives progress messages.
    out_of_time : callable
        Called before the evaluation of each service on each hardware; True ends the command.

    Returns
    -------
    list[Path]
        Paths of the written files.

    Raises
    ------
    OutOfTimeError
        The time is over before the last evaluation.
    InputError
        The folder cannot be written to.
    """
    candidates, problem = prepare(fleet, announce, out_of_time=out_of_time)
    texts = {f"{name}.csv": table.to_csv(index=False) for name, table in tables(candidates, problem).items()}
    texts[MODEL_FILE] = model_text(problem)
    try:
        with written_together(folder) as parts:
            for name, text in texts.items():
                write_whole(parts / name, text)
    except FileNotWrittenError as error:
        raise InputError(
            [Issue(str(folder), 0, 0, "--out", f"cannot be written: {error.strerror}")]
        ) from error
    return [folder / name for name in texts]


def model_text(problem: Problem) -> str:
    """Return the text of the model that minimises TCO with all demand served."""
    planning = build_model(problem, allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    return str(planning.model.proto)


def tables(candidates: CandidateSet, problem: Problem) -> dict[str, pd.DataFrame]:
    """Return the tables by name; column names contain units."""
    return {
        "candidates": _table(_candidates(problem)),
        "rejections": _table(_rejections(candidates)),
        "moments": _table([asdict(moment) for moment in problem.moments]),
        "demand": _table(_demand(problem)),
        "pools": _table(_pools(problem)),
        "acquisitions": _table(_acquisitions(problem)),
        "operator_tables": _table([source.model_dump() for source in candidates.table_sources]),
    }


def _table(rows: list[dict[str, object]]) -> pd.DataFrame:
    return pd.DataFrame([{name: as_text(value) for name, value in row.items()} for row in rows])


def _candidates(problem: Problem) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for candidate in problem.candidates:
        names = [request_class.name for request_class in problem.services[candidate.service].classes]
        for k, name in enumerate(names):
            rows.append(
                {
                    "service": candidate.service,
                    "phase": candidate.phase.value,
                    "hardware": candidate.hardware,
                    "config": candidate.config,
                    "class": name,
                    "accelerators": candidate.accelerators,
                    "requests_per_s": candidate.requests_per_s[k],
                    "ttft_ms": candidate.ttft_ms[k],
                    "tpot_ms": candidate.tpot_ms[k],
                    "power_kw": candidate.power_kw,
                    **{f"share_{kind}": share for kind, share in asdict(candidate.provenance).items()},
                }
            )
    return rows


def _rejections(candidates: CandidateSet) -> list[dict[str, object]]:
    return [
        {"service": row.service, "hardware": hardware, "reason": reason, "configurations": count}
        for row in candidates.rejections
        for hardware, counts in row.by_hardware.items()
        for reason, count in counts.items()
    ]


def _demand(problem: Problem) -> list[dict[str, object]]:
    return [
        {
            "service": cell.service,
            "region": cell.region,
            "moment": problem.moments[cell.moment].label,
            "class": request_class.name,
            "requests_per_s": rate,
            "headroom": problem.services[cell.service].headroom,
        }
        for cell in problem.cells
        for request_class, rate in zip(
            problem.services[cell.service].classes, cell.requests_per_s, strict=True
        )
    ]


def _pools(problem: Problem) -> list[dict[str, object]]:
    return [
        {
            "pool": pool.name,
            "region": pool.region,
            "hardware": pool.hardware,
            "period": period,
            "accelerators_per_unit": pool.accelerators_per_unit,
            "existing_units": pool.existing_units,
            "reserve_units": pool.reserve_units,
            "reserve_percent": pool.reserve_percent,
            "maintenance_units": pool.maintenance_in(q),
            "fixed_usd": pool.fixed_usd[q],
            "energy_usd_per_kw": pool.energy_usd_per_kw[q],
        }
        for pool in problem.pools
        for q, period in enumerate(problem.periods)
    ]


def _acquisitions(problem: Problem) -> list[dict[str, object]]:
    return [
        {
            "pool": pool.name,
            "offer": acquisition.offer.name,
            "ordered": period,
            "unit": acquisition.offer.unit,
            "max_units": acquisition.offer.max_units[q],
            "lead_time_periods": acquisition.offer.lead_time_periods,
            "capex_usd_per_unit": acquisition.capex_usd_per_unit,
            "usd_per_unit": acquisition.unit_usd[q],
            "price_source": acquisition.offer.price_source,
            "price_as_of": acquisition.offer.price_as_of,
        }
        for pool in problem.pools
        for acquisition in pool.acquisitions
        for q, period in enumerate(problem.periods)
    ]
