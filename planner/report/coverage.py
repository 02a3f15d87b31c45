"""Print the coverage of `plan check`: configurations of each service, and the sources of their figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import CandidateSet, model_errors
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.report.inaccurate_hardware import blind_error_text, print_weak_parts

WHOLE_SERVICE: Final = ({Phase.AGGREGATED}, {Phase.PREFILL, Phase.DECODE})
"""Sets of phases that together serve a complete request."""

KINDS = ("measured", "interpolated", "extrapolated", "roofline", "given")


MOST_REASONS: Final = 2
"""Reasons for exclusion printed on a line; a count replaces the others."""


def print_coverage(fleet: Fleet, candidates: CandidateSet, console: Console, full: bool = False) -> None:
    """Print one line per service and hardware: candidates by phase, sources of their latency, exclusions.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    candidates : CandidateSet
        All candidates and rejections.
    console : Console
        Output console.
    full : bool
        Whether to print every reason for exclusion instead of the most frequent ones.
    """
    console.print(_lines(fleet, candidates, full))
    console.print(f"{escape(fleet.name)} is valid: {counted(len(candidates.candidates), 'candidate')}")
    for name in unserved_services(fleet, candidates):
        message = f"nothing can serve {name}: every configuration is excluded, for the reasons above"
        console.print(f"  {escape(message)}", style="yellow", highlight=False)
    errors = model_errors((each.hardware, asdict(each.provenance)) for each in candidates.candidates)
    print_weak_parts(errors, console)
    if errors:
        console.print(f"Prediction error (median / 90th percentile): {blind_error_text()}")
    for line in _tables_read(candidates):
        console.print(f"  measured tables of {escape(line)}", style="dim", highlight=False)
    for warning in candidates.warnings:
        console.print(f"  {escape(warning)}", style="yellow", highlight=False)


def _lines(fleet: Fleet, candidates: CandidateSet, full: bool) -> Table:
    """Return the table of services and hardware, without columns for sources that no figure uses."""
    groups: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates.candidates:
        groups[candidate.service, candidate.hardware].append(candidate)
    kinds = [kind for kind in KINDS if any(_share(rows, kind) for rows in groups.values())]
    lines = Table(box=None, pad_edge=False)
    for name in ("service", "hardware"):
        lines.add_column(name, overflow="fold")
    for name in ("prefill", "decode", "aggregated", *kinds):
        lines.add_column(name, justify="right")
    lines.add_column("excluded", overflow="fold")
    excluded = {row.service: row.by_hardware for row in candidates.rejections}
    for service in fleet.services:
        own = [name for owner, name in groups if owner == service.name]
        for name in dict.fromkeys([*own, *excluded.get(service.name, {})]):
            rows = groups.get((service.name, name), [])
            counts = [str(sum(row.phase is phase for row in rows)) for phase in Phase]
            shares = [_share(rows, kind) for kind in kinds]
            reasons = excluded.get(service.name, {}).get(name, {})
            # A service without candidates needs all its reasons: any of them may be the one to fix.
            text = _reasons_text(reasons, None if full or not rows else MOST_REASONS)
            lines.add_row(escape(service.name), escape(name), *counts, *shares, escape(text))
    return lines


def _reasons_text(reasons: Mapping[str, int], most: int | None) -> str:
    """Return the reasons for exclusion, most frequent first: counts if all fit, else shares of a few."""
    ordered = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    if most is None or len(ordered) <= most:
        return ", ".join(f"{reason} {count:,}" for reason, count in ordered)
    total = sum(reasons.values())
    shown = [f"{reason} {count / total:.0%}" for reason, count in ordered[:most]]
    return f"{', '.join(shown)}, {len(ordered) - most} more"


def _tables_read(candidates: CandidateSet) -> list[str]:
    """Return one line per system: the package of its operator tables and the measured framework versions."""
    versions: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in candidates.table_sources:
        package = f"{each.package} {each.package_version}"
        versions[package, each.system][each.framework].add(each.framework_version)
    return [
        f"{package}: {system}, " + ", ".join(f"{name} {', '.join(sorted(of[name]))}" for name in sorted(of))
        for (package, system), of in sorted(versions.items())
    ]


def unserved_services(fleet: Fleet, candidates: CandidateSet) -> list[str]:
    """Return the services that have demand in a class without a configuration for every phase."""
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
    """Return the mean share of the latency that comes from one kind of source, as text."""
    if not rows:
        return ""
    share = sum(getattr(row.provenance, kind) for row in rows) / len(rows)
    return f"{share:.0%}" if share else ""
