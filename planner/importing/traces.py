"""Convert a trace to the traffic of a service: classes, lengths, burstiness, demand and remarks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from fleetplan.fleet.figures import counted
from fleetplan.fleet.resolve.services.length_files import HISTOGRAM_COLUMNS
from fleetplan.planner.export.new_file import write_new_files
from fleetplan.planner.importing.fragments import refuse_file_name
from fleetplan.planner.importing.length_counts import LengthClass
from fleetplan.planner.importing.progress import reading
from fleetplan.planner.importing.trace_summary import (
    CountedTrace,
    TraceStatistics,
    count_trace,
    trace_statistics,
)

CLASS_NAMES: Final = {
    1: ("all",),
    2: ("short", "long"),
    3: ("short", "medium", "long"),
    4: ("short", "medium", "long", "longest"),
}
"""Names of classes by their number, shortest prompts first."""


@dataclass(frozen=True, slots=True)
class TraceClass:
    """Requests of a trace with prompts of similar length.

    Attributes
    ----------
    name : str
        Name in the fleet file.
    share : float
        Share of all requests.
    input_tokens, output_tokens : int
        Mean lengths. [tokens]
    histogram : str
        Lengths as the text of a CSV file.
    """

    name: str
    share: float
    input_tokens: int
    output_tokens: int
    histogram: str


@dataclass(frozen=True, slots=True)
class ImportedTrace:
    """A trace as parts of a fleet file.

    Attributes
    ----------
    statistics : TraceStatistics
        Statistics of the trace.
    classes : tuple[TraceClass, ...]
        Classes, shortest prompts first.
    """

    statistics: TraceStatistics
    classes: tuple[TraceClass, ...]


def import_trace(trace: CountedTrace, classes: int) -> ImportedTrace:
    """Return classes and statistics of a trace.

    Parameters
    ----------
    trace : CountedTrace
        Counted trace.
    classes : int
        Number of classes, 1 to 4; fewer if fewer lengths occur.

    Raises
    ------
    InputError
        The trace has no two requests at different times.
    """
    statistics = trace_statistics(trace)
    found = trace.lengths.classes(classes)
    named = zip(CLASS_NAMES[len(found)], found, strict=True)
    return ImportedTrace(statistics, tuple(_class(name, each) for name, each in named))


def _class(name: str, found: LengthClass) -> TraceClass:
    rows = [f"{b.input_from},{b.input_to},{b.output_from},{b.output_to},{b.share:.8g}" for b in found.bins]
    return TraceClass(
        name,
        found.share,
        max(1, round(found.input_tokens)),
        max(1, round(found.output_tokens)),
        "\n".join([",".join(HISTOGRAM_COLUMNS), *rows]) + "\n",
    )


def lengths_file(service: str, request_class: TraceClass) -> str:
    """Return the file name for the lengths of a class."""
    suffix = "" if request_class.name == "all" else f"-{request_class.name}"
    return f"{service}{suffix}-lengths.csv"


def service_fragment(service: str, source: Path, imported: ImportedTrace) -> str:
    """Return a fleet file fragment with the traffic of a service, without model, precision and limits."""
    return "\n".join(_fragment_lines(service, source, imported)) + "\n"


def _fragment_lines(service: str, source: Path, imported: ImportedTrace) -> Iterator[str]:
    found = imported.statistics
    yield f"# Traffic of {source.name}: {counted(found.requests, 'request')} in {found.span_s:,.0f} s."
    yield f"# Requests/s: {found.mean_per_s:.4g} on average, {found.peak_per_s:.4g} in the busiest minute."
    for name, tokens in (("a prompt", found.input_tokens), ("an output", found.output_tokens)):
        yield (
            f"# Tokens of {name}: {tokens.mean:.0f} on average, {tokens.p50:.0f} / {tokens.p95:.0f} / "
            f"{tokens.p99:.0f} at the 50th / 95th / 99th percentile."
        )
    if found.by_hour:
        yield f"# Rate by hour over the mean: {' '.join(f'{ratio:.2f}' for ratio in found.by_hour)}."
    if (prompts := found.prompts) is not None:
        yield (
            f"# Prompts: {prompts.seen_ratio:.0%} of their tokens also began an earlier prompt; "
            f"{counted(prompts.common_tokens, 'token')} begin most of them "
            f"(techniques.shared_prefix_tokens)."
        )
    if found.sessions.sessions:
        each = f"{found.sessions.requests_per_session:.1f} requests on average"
        yield f"# Sessions: {found.sessions.sessions:,} of at least two requests, {each}."
    yield "services:"
    yield f"  - name: {service}"
    yield "    # fill in model, precision and slo"
    yield from _workload_lines(service, imported.classes)
    yield f"    traffic: {{burstiness: {found.burstiness:.3g}}}"
    yield f"    demand: {found.peak_per_s:.4g}"


def _workload_lines(service: str, classes: tuple[TraceClass, ...]) -> Iterator[str]:
    if len(classes) == 1:
        only = classes[0]
        yield (
            f"    workload: {{input_tokens: {only.input_tokens}, output_tokens: {only.output_tokens}, "
            f"lengths: {lengths_file(service, only)}}}"
        )
        return
    yield "    workload:"
    yield "      classes:"
    # The last share is the remainder, so that rounded shares add up to one.
    shares = [round(each.share, 4) for each in classes]
    shares[-1] = round(1 - sum(shares[:-1]), 4)
    for share, each in zip(shares, classes, strict=True):
        yield (
            f"        {each.name}: {{share: {share:g}, input_tokens: {each.input_tokens}, "
            f"output_tokens: {each.output_tokens}, lengths: {lengths_file(service, each)}}}"
        )


def run_trace(path: Path, service: str, classes: int, out: Path, force: bool, errors: Console) -> None:
    """Write the fragment of a fleet file and the lengths of a trace into a folder.

    Raises
    ------
    InputError
        The trace is unreadable, all requests arrive at once, the service's name is not a valid file name, or
        a file exists.
    """
    refuse_file_name("--service", service)
    with reading(path, errors) as watch:
        trace = count_trace(path, watch)
    for reason in trace.rejected:
        errors.print(f"skipped: {reason}", style="yellow", markup=False, highlight=False)
    imported = import_trace(trace, classes)
    files = {lengths_file(service, each): each.histogram for each in imported.classes}
    files[f"{service}.yaml"] = service_fragment(service, path, imported)
    write_new_files(out, files, over=force)
    taken = counted(imported.statistics.requests, "request")
    errors.print(
        f"{taken} ({trace.form}) taken; written to {out}/{service}.yaml",
        style="dim",
        markup=False,
    )
