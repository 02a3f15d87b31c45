"""Python interface of the planner: fleets as paths or mappings in, tables out.

`import fleetplan` offers `solve`, `landscape` and `predict` from here, loaded on first use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import pandas as pd
from markupsafe import Markup, escape

from fleetplan.fleet.document import Document, compose
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import money, percent
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.resolve import build_fleet
from fleetplan.perfmodel.predict import predict as predict_cases
from fleetplan.planner.api import Planned, plan_fleet
from fleetplan.planner.export.files import plan_tables
from fleetplan.planner.landscape.answer import answer
from fleetplan.planner.landscape.options import ModelOptions, search_of
from fleetplan.planner.landscape.question import question_of_service
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.report.folder import write_folder
from fleetplan.planner.report.headline import status_text
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.search import SearchLimits, default_workers
from fleetplan.scenarios.expand import expand
from fleetplan.scenarios.load import load_fleet

FleetSpec: TypeAlias = "str | Path | Mapping[str, object]"
"""Fleet file, or its contents as a mapping."""

MAPPING_NAME = "fleet.yaml"
"""Name of a fleet without a file in messages; relative paths start in the working directory."""


class InfeasibleFleetError(Exception):
    """No plan serves the fleet; `outcome` lists the shortages."""

    def __init__(self, outcome: Infeasible) -> None:
        lines = [
            f"{row.service} ({row.request_class}) in {row.region} {row.period}: {row.what_is_missing}"
            for row in outcome.shortages
        ]
        more = [outcome.more_short] if outcome.more_short else []
        super().__init__("\n".join([f"{outcome.fleet} cannot be served", *lines, *more]))
        self.outcome = outcome


@dataclass(frozen=True, repr=False)
class SolvedFleet:
    """Verified plan with its tables.

    Attributes
    ----------
    plan : Plan
        The plan, as in plan.json.
    fleet : Fleet
        The planned fleet.
    baseline : Plan or None
        The plan in force.
    """

    plan: Plan
    fleet: Fleet
    baseline: Plan | None = None

    def __repr__(self) -> str:
        """Return only the headline: the plan itself is long."""
        return f"<SolvedFleet {self.plan.fleet!r}: TCO {money(self.tco_usd)}, gap {percent(self.gap)}>"

    @property
    def tco_usd(self) -> float:
        """Total cost of ownership over the horizon. [USD]"""
        return self.plan.objective_usd

    @property
    def gap(self) -> float:
        """Optimality gap, as a share of the cost."""
        return self.plan.gap

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table of the plan by name, as in the CSV files."""
        return plan_tables(self.plan)

    @property
    def placements(self) -> pd.DataFrame:
        """Placements: one row per service, pool, phase and configuration."""
        return self.tables["placements"]

    @property
    def purchases(self) -> pd.DataFrame:
        """Purchases and rentals."""
        return self.tables["purchases"]

    @property
    def costs(self) -> pd.DataFrame:
        """Cost by period, service and pool."""
        return self.tables["costs"]

    def report_html(self) -> str:
        """Return the report as a page, without frontiers; `write` draws them."""
        return report_page(self.plan, (), self.baseline)

    def write(self, folder: str | Path) -> Path:
        """Write the files of `plan solve --out`; return the folder."""
        write_folder(self.plan, Path(folder), self.fleet, self.baseline, lambda _: None)
        return Path(folder)

    def _repr_html_(self) -> str:
        """Return a headline and the placements, for notebooks."""
        plan = self.plan
        head = Markup("<p><b>{}</b>: TCO <b>{}</b>, {}, gap {} (lower bound {}{})</p>").format(
            plan.fleet, money(plan.objective_usd), status_text(plan), percent(plan.gap),
            money(plan.bound_usd), plan.bound_scope,
        )  # fmt: skip
        shown = ("period", "service", "phase", "pool", "hardware", "config", "replicas", "accelerators",
                 "requests_per_s", "utilisation", "ttft_ms", "tpot_ms", "usd")  # fmt: skip
        header = Markup("").join(Markup("<th>{}</th>").format(name) for name in shown)
        rows = Markup("").join(
            Markup("<tr>{}</tr>").format(
                Markup("").join(Markup("<td>{}</td>").format(_short(getattr(row, name))) for name in shown)
            )
            for row in plan.placements
        )
        return str(head + Markup("<table><tr>{}</tr>{}</table>").format(header, rows))


def _short(value: object) -> Markup:
    if value is None:
        return Markup("")
    return escape(f"{value:.4g}" if isinstance(value, float) else value)


def solve(
    fleet: FleetSpec,
    *,
    scenarios: Sequence[str] = (),
    assignments: Sequence[str] = (),
    gap: float = 0.005,
    time_limit_s: float = 120.0,
    seed: int = 1,
    baseline: Plan | None = None,
) -> SolvedFleet:
    """Return the cheapest plan of a fleet, verified, with its tables.

    Parameters
    ----------
    fleet : str, Path or Mapping
        Fleet file, or its contents as a mapping.
    scenarios, assignments : Sequence[str]
        As `-s NAME` and `--set key=value` on the command line.
    gap : float
        Optimality gap at which to stop, as a share of the cost.
    time_limit_s : float
        Time limit of all solves together. [s]
    seed : int
        Random seed of the solver.
    baseline : Plan, optional
        The plan in force, against which starts are counted.

    Raises
    ------
    InputError
        With everything that is wrong with the fleet.
    InfeasibleFleetError
        If it is proven that no plan serves the fleet.
    NoPlanFoundError
        If the limit was reached before the first plan.
    """
    resolved = resolve(fleet, scenarios, assignments)
    limits = SearchLimits(time_limit_s, gap, seed, default_workers())
    planned: Planned = plan_fleet(resolved, limits, baseline=baseline)
    if isinstance(planned.outcome, Infeasible):
        raise InfeasibleFleetError(planned.outcome)
    return SolvedFleet(planned.outcome, resolved, baseline)


def resolve(fleet: FleetSpec, scenarios: Sequence[str] = (), assignments: Sequence[str] = ()) -> Fleet:
    """Return a fleet with all defaults applied.

    Raises
    ------
    InputError
        With everything that is wrong.
    """
    if not isinstance(fleet, Mapping):
        return load_fleet(Path(fleet), scenarios, assignments)
    if "imports" in fleet:
        raise InputError(
            [Issue(MAPPING_NAME, 0, 0, "imports", "work only in files", "write the fleet to a file")]
        )
    text = yaml_text(dict(fleet), allow_unicode=True)
    issues: list[Issue] = []
    root = compose(text, MAPPING_NAME, issues)
    if issues or root is None:
        raise InputError(issues)
    hashes = {MAPPING_NAME: hashlib.sha256(text.encode()).hexdigest()}
    return build_fleet(expand(Document(Path(MAPPING_NAME), root, hashes), scenarios, assignments))


def landscape(  # noqa: PLR0913  (each is an option of `plan landscape`)
    fleet: FleetSpec | None = None,
    *,
    service: str | None = None,
    model: str | None = None,
    hardware: Sequence[str] | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    context_tokens: int | None = None,
    ttft_ms: float | None = None,
    tpot_ms: float | None = None,
    weights: Sequence[str] = ("bf16",),
    kv: Sequence[str] = ("bf16",),
    framework: str = "vllm",
    prices: str = "rental_3y",
    max_accelerators: int | None = None,
) -> pd.DataFrame:
    """Return the configurations within the limits that no other on their hardware beats.

    Parameters
    ----------
    fleet : str, Path or Mapping, optional
        Fleet of the service; without it, `model`, `hardware` and lengths are required.
    service : str, optional
        Service of the fleet; its only one if left out.
    model, hardware, input_tokens, output_tokens, context_tokens, ttft_ms, tpot_ms
        As in `plan landscape`. [tokens, ms]
    weights, kv : Sequence[str]
        Data types to try, in all combinations.
    framework, prices : str
        Framework whose operators are used, and column of the price book.
    max_accelerators : int, optional
        Accelerators of the largest replica.

    Returns
    -------
    pandas.DataFrame
        One row per configuration: phase, hardware, degrees, batch, latency [ms], rate of an accelerator
        [1/s], cost and energy of a million tokens, memory [GiB], and shares of its time by source of the
        number.
    """
    asked = ModelOptions(
        model,
        None if hardware is None else ",".join(hardware),
        input_tokens,
        output_tokens,
        context_tokens,
        ttft_ms,
        tpot_ms,
        ",".join(weights),
        ",".join(kv),
        framework,
        prices,
    )
    search = search_of(max_accelerators, None)
    if fleet is None:
        question = asked.question(search)
    else:
        asked.refuse_beside_fleet()
        question = question_of_service(resolve(fleet), service, search)
    found = answer(question)
    return found.table(found.result.candidates)


def predict(cases: pd.DataFrame | Sequence[Mapping[str, object]], folder: str | Path = ".") -> pd.DataFrame:
    """Return latency and throughput of explicit configurations, one row per case in the same order.

    Parameters
    ----------
    cases : pandas.DataFrame or Sequence[Mapping]
        Columns of `plan predict`: case_id, model, hardware, mode, degrees, lengths, and a load.
    folder : str or Path
        Folder where relative paths of model configurations start.

    Raises
    ------
    InputError
        If required columns are missing.
    """
    frame = cases if isinstance(cases, pd.DataFrame) else pd.DataFrame(list(cases))
    return predict_cases(frame, Path(folder))
