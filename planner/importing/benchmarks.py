"""Convert load generator results to measurements for `plan calibrate` and `plan predict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from fleetplan.fleet.errors import brief, names_hint
from fleetplan.perfmodel.predict import DEFAULT_FRAMEWORK, FRAMEWORKS
from fleetplan.planner.importing.benchmark_formats import READERS
from fleetplan.planner.importing.benchmark_rows import BenchmarkRow, MeasuredDeployment
from fleetplan.planner.importing.records import (
    RejectedRowError,
    RejectedRows,
    known_hardware,
    mapping,
    rows_of,
)


@dataclass(frozen=True, slots=True)
class ImportedBenchmarks:
    """Imported rows for `plan calibrate`, and the rejected results."""

    rows: tuple[Mapping[str, object], ...]
    rejected: tuple[RejectedRows, ...]


def import_benchmarks(
    form: str,
    document: object,
    given: MeasuredDeployment,
    input_tokens: float | None = None,
    served_as: str | None = None,
) -> ImportedBenchmarks:
    """Return the measurements in a document.

    Parameters
    ----------
    form : str
        A name in `READERS`.
    document : object
        Content of the file.
    given : MeasuredDeployment
        Values that the file does not state; rows that contradict them are rejected.
    input_tokens : float or None
        Mean prompt of runs without a stated one. [tokens]
    served_as : str or None
        The server's name of the given model (`--served-model-name`).
    """
    rows, rejected = [], []
    lists, read = READERS[form]
    for position, row in enumerate(rows_of(document, lists)):
        place = f"row {position + 1}"
        try:
            found = read(mapping(row, "an object"))
            if found.input_tokens is None:
                found = replace(found, input_tokens=input_tokens)
            stated = found.deployment
            if served_as is not None and stated.model == served_as:
                stated = replace(stated, model=None)
            rows.append(_case(replace(found, deployment=_joined(stated, given)), place))
        except RejectedRowError as reason:
            rejected.append(RejectedRows(place, brief(str(reason))))
    return ImportedBenchmarks(tuple(rows), tuple(rejected))


def _joined(stated: MeasuredDeployment, given: MeasuredDeployment) -> MeasuredDeployment:
    """Fill in values that a row lacks from the options."""
    both: dict[str, object] = {}
    for each in fields(MeasuredDeployment):
        own, other = getattr(stated, each.name), getattr(given, each.name)
        if own is not None and other is not None and str(own).lower() != str(other).lower():
            way = f" (--served-as {own} treats them as the same)" if each.name == "model" else ""
            raise RejectedRowError(f"{each.name} is {own!r}, not the {other!r} of the command line{way}")
        both[each.name] = other if own is None else own
    return MeasuredDeployment(**both)  # type: ignore[arg-type]


def _case(found: BenchmarkRow, place: str) -> dict[str, object]:
    """Return the row of a table, after checks against the catalogue."""
    deployment = found.deployment
    for name in ("model", "hardware", "weights", "tp", "framework_version"):
        if getattr(deployment, name) is None:
            raise RejectedRowError(f"{name} is not stated: give it on the command line")
    framework = deployment.framework or DEFAULT_FRAMEWORK
    if framework not in FRAMEWORKS:
        raise RejectedRowError(f"framework {framework!r}: {names_hint(framework, FRAMEWORKS)}")
    if found.concurrency is None and found.requests_per_s is None:
        raise RejectedRowError("neither concurrency nor a request rate is stated: the load is unknown")
    if found.ttft_ms is None and found.tpot_ms is None:
        raise RejectedRowError("neither TTFT nor TPOT is stated")
    if found.input_tokens is None:
        raise RejectedRowError("input tokens are not stated: give --input-tokens")
    closed = found.concurrency is not None
    return {
        "case_id": place,
        **asdict(replace(deployment, framework=framework, hardware=known_hardware(str(deployment.hardware)))),
        "mode": "closed_loop" if closed else "open_loop",
        "input_tokens": _tokens(found.input_tokens, "input tokens"),
        "output_tokens": _tokens(found.output_tokens, "output tokens"),
        "concurrency": found.concurrency if closed else None,
        "requests_per_s": None if closed else found.requests_per_s,
        "ttft_ms": found.ttft_ms,
        "tpot_ms": found.tpot_ms,
    }


def _tokens(mean: float, what: str) -> int:
    if round(mean) < 1:
        raise RejectedRowError(f"{what} are {mean:g} on average")
    return round(mean)
