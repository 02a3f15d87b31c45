"""Coverage and cross-validation errors of the operator tables, for `plan optables`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import (
    AXES,
    BYTES_PER_ELEMENT,
    COLLECTIVE_KINDS,
    WEIGHT_KINDS,
    OperatorKind,
    Provenance,
)
from fleetplan.perfmodel.optables.choice import ChosenRows
from fleetplan.perfmodel.optables.interpolation.leave_one_out import (
    ErrorQuantiles,
    left_out_nodes,
    left_out_sites,
)
from fleetplan.perfmodel.optables.measured.tables import FRAMEWORKS
from fleetplan.perfmodel.optables.own.store import stored_tables
from fleetplan.perfmodel.optables.rows import site_dimensions
from fleetplan.perfmodel.optables.source import operator_source
from fleetplan.perfmodel.optables.unique import unique_rows

ACCEPTED_MEDIAN: Final[dict[OperatorKind, float]] = {
    OperatorKind.GEMM: 0.05,
    OperatorKind.PREFILL_ATTENTION: 0.03,
    OperatorKind.DECODE_ATTENTION: 0.03,
}
"""Largest accepted median error of left-out measurements, as a ratio. Source: the aim of this project,
compared with the 3.6-4.9 % (GEMM) and 1.1-2.0 % (attention) that aiconfigurator publishes of its tables."""

LEFT_OUT_SITES: Final = 40
"""Single sites that are left out of a table, drawn at random with a fixed seed."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Measurements that answer for one operator, data type, part and framework.

    Attributes
    ----------
    hardware, framework, operator, dtype : str
        Table.
    n_rows : int
        Measurements.
    n_sites : int
        Combinations of the dimensions that a sweep holds fixed.
    borrowed_ratio : float
        Share of the rows that were measured under other frameworks, and count as interpolated.
    sources : tuple[str, ...]
        Framework versions and user files behind it.
    """

    hardware: str
    framework: str
    operator: str
    dtype: str
    n_rows: int
    n_sites: int
    borrowed_ratio: float
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableError:
    """Errors of predictions of left-out measurements of one table.

    Attributes
    ----------
    hardware, framework, operator, dtype : str
        Table.
    nodes : ErrorQuantiles or None
        A measurement within a sweep left out; None if no sweep is long enough.
    sites : ErrorQuantiles or None
        Errors of whole sweeps left out; None without neighbours to borrow from.
    accepted_ratio : float or None
        Largest accepted median of `nodes`; None without one.
    """

    hardware: str
    framework: str
    operator: str
    dtype: str
    nodes: ErrorQuantiles | None
    sites: ErrorQuantiles | None
    accepted_ratio: float | None


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """Errors of all tables of one operator and data type.

    Attributes
    ----------
    operator, dtype : str
        Tables.
    n_tables : int
        Number of tables, over parts and frameworks.
    node_median_ratio, node_p90_ratio, site_median_ratio, site_p90_ratio : float or None
        Median over the tables of that quantile of each.
    worst_median_ratio : float or None
        Largest median error of nodes.
    accepted_ratio : float or None
        As in `TableError`.
    n_above : int
        Tables whose median error is above it.
    """

    operator: str
    dtype: str
    n_tables: int
    node_median_ratio: float | None
    node_p90_ratio: float | None
    worst_median_ratio: float | None
    site_median_ratio: float | None
    site_p90_ratio: float | None
    accepted_ratio: float | None
    n_above: int


def coverage(hardware: Sequence[str] = (), frameworks: Sequence[str] = ()) -> Iterator[Coverage]:
    """List the measurements of parts of the catalogue.

    Parameters
    ----------
    hardware, frameworks : Sequence[str]
        Parts; all if empty.

    Raises
    ------
    InputError
        A name is not known.
    """
    for part, framework, kind, dtype, chosen in _tables(hardware, frameworks):
        rows = chosen.rows
        sites = unique_rows({name: rows.dims[name] for name in site_dimensions(kind)})
        yield Coverage(
            part.name,
            framework,
            kind.value,
            dtype,
            rows.n_rows,
            int(next(iter(sites.dims.values())).size),
            float((rows.provenance > Provenance.MEASURED).mean()),
            tuple(
                dict.fromkeys(f"{each.framework} {each.framework_version}".strip() for each in chosen.sources)
            ),
        )


def unmeasured_hardware() -> tuple[str, ...]:
    """Return the parts of the catalogue without measured operators, priced by the roofline."""
    return tuple(name for name, part in accelerators().items() if not _is_measured(part))


def carried_over_hardware() -> tuple[str, ...]:
    """Return the parts that have no table but those of another part, times the ratio of their rooflines."""
    return tuple(name for name, part in accelerators().items() if _is_carried_over(part))


def errors(
    hardware: Sequence[str] = (),
    frameworks: Sequence[str] = (),
    announce: Callable[[str], None] | None = None,
) -> Iterator[TableError]:
    """Leave measurements out of every table and predict them.

    Parameters
    ----------
    hardware : Sequence[str]
        Parts; if empty, all except `carried_over_hardware`, whose tables would count twice.
    frameworks : Sequence[str]
        As in `coverage`.
    announce : callable, optional
        Told which part and framework comes next.
    """
    last = ""
    carried = carried_over_hardware()
    asked = hardware or tuple(name for name in accelerators() if name not in carried)
    for part, framework, kind, dtype, chosen in _tables(asked, frameworks):
        here = f"{part.name} {framework}"
        if announce is not None and here != last:
            announce(here)
            last = here
        nodes = _errors_or_none(partial(left_out_nodes, part, chosen.rows))
        sites = _errors_or_none(partial(left_out_sites, part, chosen.rows, LEFT_OUT_SITES))
        if nodes is not None or sites is not None:
            yield TableError(part.name, framework, kind.value, dtype, nodes, sites, ACCEPTED_MEDIAN.get(kind))


def is_above(error: TableError) -> bool:
    """Whether the median error of a table is above the accepted one."""
    if error.accepted_ratio is None or error.nodes is None:
        return False
    return error.nodes.median_ratio > error.accepted_ratio


def summary(found: Sequence[TableError]) -> list[ErrorSummary]:
    """Return one line per operator and data type, in order of appearance, with medians over tables."""
    groups: dict[tuple[str, str], list[TableError]] = {}
    for each in found:
        groups.setdefault((each.operator, each.dtype), []).append(each)
    return [_summary(operator, dtype, tables) for (operator, dtype), tables in groups.items()]


def _summary(operator: str, dtype: str, tables: list[TableError]) -> ErrorSummary:
    nodes = [each.nodes for each in tables if each.nodes is not None]
    sites = [each.sites for each in tables if each.sites is not None]
    return ErrorSummary(
        operator,
        dtype,
        len(tables),
        median(each.median_ratio for each in nodes) if nodes else None,
        median(each.p90_ratio for each in nodes) if nodes else None,
        max(each.median_ratio for each in nodes) if nodes else None,
        median(each.median_ratio for each in sites) if sites else None,
        median(each.p90_ratio for each in sites) if sites else None,
        tables[0].accepted_ratio,
        sum(is_above(each) for each in tables),
    )


def _errors_or_none(find: Callable[[], ErrorQuantiles]) -> ErrorQuantiles | None:
    try:
        return find()
    except ValueError:
        # A table too small to leave anything out of.
        return None


def _is_measured(part: Accelerator) -> bool:
    return part.measured_system is not None or bool(stored_tables(part.name))


def _is_carried_over(part: Accelerator) -> bool:
    carried = part.measured_system is not None and part.carried_figures is not None
    return carried and not stored_tables(part.name)


def _tables(
    hardware: Sequence[str], frameworks: Sequence[str]
) -> Iterator[tuple[Accelerator, str, OperatorKind, str, ChosenRows]]:
    catalogue = accelerators()
    _check("--hardware", hardware, tuple(catalogue))
    _check("--framework", frameworks, FRAMEWORKS)
    for name in hardware or catalogue:
        part = catalogue[name]
        if not _is_measured(part):
            continue
        for framework in frameworks or FRAMEWORKS:
            source = operator_source(part, framework)
            for kind in AXES:
                for dtype in _dtypes(part, kind):
                    chosen = source.measured_rows(kind, dtype)
                    if chosen is not None:
                        yield part, framework, kind, dtype, chosen


def _dtypes(part: Accelerator, kind: OperatorKind) -> tuple[str, ...]:
    """Return the data types to check on a part: those that it has units for."""
    if kind in COLLECTIVE_KINDS:
        return ("bf16",)
    if kind in WEIGHT_KINDS:
        return tuple(dtype for dtype in BYTES_PER_ELEMENT if part.peak_tflops(dtype) is not None)
    return tuple(BYTES_PER_ELEMENT)


def _check(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    issues = [
        Issue(option, 0, 0, "", f"{name!r} is not known", names_hint(name, known))
        for name in names
        if name not in known
    ]
    if issues:
        raise InputError(issues)
