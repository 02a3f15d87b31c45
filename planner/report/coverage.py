"""What `plan check` says: how many configurations serve each service, and what their numbers rest on."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import CandidateSet, model_errors
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.report.weak_parts import blind_error_text, print_weak_parts

WHOLE_SERVICE: Final = ({Phase.AGGREGATED}, {Phase.PREFILL, Phase.DECODE})
"""Phases that serve a request together."""

KINDS = ("measured", "interpolated", "extrapolated", "roofline", "given")


def print_coverage(fleet: Fleet, candidates: CandidateSet, console: Console) -> None:
    """One line a service and hardware: candidates by phase, shares of their latency, what was excluded.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    candidates : CandidateSet
        All candidates and rejections.
    console : Console
        Where to.
    """
    lines = Table(box=None, pad_edge=False)
    for name in ("service", "hardware"):
        lines.add_column(name, overflow="fold")
    for name in ("prefill", "decode", "aggregated", *KINDS):
        lines.add_column(name, justify="right")
    lines.add_column("excluded", overflow="fold")
    groups: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates.candidates:
        groups[candidate.service, candidate.hardware].append(candidate)
    excluded = {row.service: row.by_hardware for row in candidates.rejections}
    for service in fleet.services:
        own = [name for owner, name in groups if owner == service.name]
        for name in dict.fromkeys([*own, *excluded.get(service.name, {})]):
            rows = groups.get((service.name, name), [])
            counts = [str(sum(row.phase is phase for row in rows)) for phase in Phase]
            shares = [_share(rows, kind) for kind in KINDS]
            reasons = excluded.get(service.name, {}).get(name, {})
            text = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
            lines.add_row(escape(service.name), escape(name), *counts, *shares, escape(text))
    console.print(lines)
    console.print(f"{escape(fleet.name)} is valid: {counted(len(candidates.candidates), 'candidate')}")
    for name in unserved_services(fleet, candidates):
        message = f"nothing can serve {name}: every configuration is excluded, for the reasons above"
        console.print(f"  {escape(message)}", style="yellow", highlight=False)
    errors = model_errors((each.hardware, asdict(each.provenance)) for each in candidates.candidates)
    print_weak_parts(errors, console)
    if errors:
        console.print(f"Prediction error (median / 90th percentile): {blind_error_text()}")
    read = {
        f"{each.package} {each.package_version}: {each.system}, {each.framework} {each.framework_version}"
        for each in candidates.table_sources
    }
    for line in sorted(read):
        console.print(f"  measured tables of {escape(line)}", style="dim")
    for warning in candidates.warnings:
        console.print(f"  {escape(warning)}", style="yellow", highlight=False)


def unserved_services(fleet: Fleet, candidates: CandidateSet) -> list[str]:
    """Return the names of services with demand of which some class has no configuration, or half of one."""
    found = []
    for service in fleet.services:
        own = [each for each in candidates.candidates if each.service == service.name]
        asked = {name for (_, _, name), rate in service.demand.peak.items() if rate > 0}
        for k, request_class in enumerate(service.classes):
            phases = {each.phase for each in own if each.requests_per_s[k] > 0}
            if request_class.name in asked and not any(phases >= whole for whole in WHOLE_SERVICE):
                found.append(service.name)
                break
    return found


def _share(rows: list[Candidate], kind: str) -> str:
    """Mean share of the latency that rests on one kind of number."""
    if not rows:
        return ""
    share = sum(getattr(row.provenance, kind) for row in rows) / len(rows)
    return f"{share:.0%}" if share else ""
