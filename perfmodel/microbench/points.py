"""Points of measurement: an operator at some dimensions, and its time."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT, OperatorKind
from fleetplan.perfmodel.optables.rows import table_dimensions


class Unmeasurable(Exception):  # noqa: N818 - it says why a point is left out, which is no failure
    """A point that this device or this torch cannot run; the message says why."""


@dataclass(frozen=True, slots=True)
class Point:
    """An operator at fixed dimensions.

    Attributes
    ----------
    kind : OperatorKind
        Operator.
    dtype : str
        A key of `BYTES_PER_ELEMENT`.
    dims : tuple[tuple[str, int], ...]
        The dimensions of a row of its table, in the order of `table_dimensions`.
    """

    kind: OperatorKind
    dtype: str
    dims: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        if tuple(name for name, _ in self.dims) != table_dimensions(self.kind):
            raise ValueError(f"{self.kind} has the dimensions {table_dimensions(self.kind)}, not {self.dims}")
        if self.dtype not in BYTES_PER_ELEMENT:
            raise ValueError(f"unknown data type {self.dtype!r}")

    def __getitem__(self, name: str) -> int:
        return dict(self.dims)[name]

    @property
    def table(self) -> tuple[OperatorKind, str]:
        """The table that it belongs to."""
        return self.kind, self.dtype

    @property
    def label(self) -> str:
        """Name of the point in messages."""
        return f"{self.kind} {self.dtype} " + " ".join(f"{name}={value}" for name, value in self.dims)


def point(kind: OperatorKind, dtype: str, **dims: int) -> Point:
    """Make a point from dimensions in any order.

    Raises
    ------
    ValueError
        Dimensions that are not those of the operator's table.
    """
    names = table_dimensions(kind)
    if set(dims) != set(names):
        raise ValueError(f"{kind} has the dimensions {names}, not {sorted(dims)}")
    return Point(kind, dtype, tuple((name, int(dims[name])) for name in names))


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measured time of a point.

    Attributes
    ----------
    point : Point
        Point.
    latency_us : float
        Time of one execution. [us]
    spread_ratio : float
        Half the distance between the quartiles of the executions, over their median.
    repeats : int
        Executions.
    power_w, clock_mhz, temperature_c : float or None
        State of the board right after; None if unknown.
    control_us : float or None
        Time of the control beside it, the longer one of before and after; None without one. [us]
    """

    point: Point
    latency_us: float
    spread_ratio: float
    repeats: int
    power_w: float | None = None
    clock_mhz: float | None = None
    temperature_c: float | None = None
    control_us: float | None = None
