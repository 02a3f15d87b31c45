"""Record of a serving technique: its columns in a table of cases, and its effect on a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from fleetplan.fleet.inventory import Techniques
from fleetplan.fleet.tables import MODES
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.operators import Operator
from fleetplan.perfmodel.steps import StepShape

ALL_MODES: Final = frozenset(MODES)
PROMPTING_MODES: Final = ALL_MODES - {"decode"}
STEADY_LOOPS: Final = frozenset({"closed_loop", "open_loop"})
LOOPS: Final = STEADY_LOOPS | {"burst", "offline"}
GENERATING_MODES: Final = STEADY_LOOPS | {"offline", "decode", "static", "disaggregated"}

SMALLEST: Final = 1e-9
LARGEST: Final = 1e9


@dataclass(frozen=True, slots=True)
class TechniqueColumn:
    """A column of a table of cases that switches something on.

    Attributes
    ----------
    low, high : float
        Range; a text column has none.
    whole : bool
        Whole numbers only.
    modes : frozenset[str]
        Modes with an effect; it is rejected in others.
    needs : tuple[str, ...]
        Columns that must be given with it.
    allowed : tuple[str, ...]
        Values of a text column.
    is_month : bool
        A year and month (YYYY-MM).
    """

    low: float
    high: float
    whole: bool
    modes: frozenset[str]
    needs: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    is_month: bool = False


def number(
    low: float, high: float, modes: frozenset[str] = ALL_MODES, *needs: str, whole: bool = False
) -> TechniqueColumn:
    """Return a column of numbers."""
    return TechniqueColumn(low, high, whole, modes, needs)


def choice(allowed: tuple[str, ...], *needs: str) -> TechniqueColumn:
    """Return a column of names."""
    return TechniqueColumn(0, 0, False, ALL_MODES, needs, allowed)


@dataclass(frozen=True, slots=True)
class TechniqueStep:
    """A step as techniques see it.

    Attributes
    ----------
    architecture : ModelArchitecture
        The model.
    asked : StepShape
        Prompts and sequences.
    computed : StepShape
        The same as the model computes them, after every technique that changes the shape.
    techniques : Techniques
        Techniques.
    """

    architecture: ModelArchitecture
    asked: StepShape
    computed: StepShape
    techniques: Techniques


def _same_named(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of columns that are named as a field of `Techniques`."""
    names = {each.name for each in fields(Techniques)}
    return {name: value for name, value in values.items() if name in names}


def _nothing_refused(cells: Mapping[str, str]) -> Iterator[str]:
    yield from ()


def _no_problem(architecture: ModelArchitecture, framework: str, techniques: Techniques) -> str:
    return ""


def _same_shape(shape: StepShape, techniques: Techniques) -> StepShape:
    return shape


def _same_operators(operators: Iterable[Operator], step: TechniqueStep) -> Iterable[Operator]:
    return operators


@dataclass(frozen=True, slots=True)
class Technique:
    """Effects of a technique; omitted fields change nothing.

    Attributes
    ----------
    columns : Mapping[str, TechniqueColumn]
        Its columns in a table of cases; units are those of the `techniques` block of a fleet file.
    switched : Callable
        Fields of `Techniques` from the values of its columns that are given.
    refused : Callable
        Problems of the cells of a case, each naming its column.
    problem : Callable
        Why a model, or a framework, cannot use it; an empty string if it can.
    shape : Callable
        The step as the model computes it.
    operators : Callable
        The operators of the step with its own.
    """

    columns: Mapping[str, TechniqueColumn] = field(default_factory=dict)
    switched: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _same_named
    refused: Callable[[Mapping[str, str]], Iterator[str]] = _nothing_refused
    problem: Callable[[ModelArchitecture, str, Techniques], str] = _no_problem
    shape: Callable[[StepShape, Techniques], StepShape] = _same_shape
    operators: Callable[[Iterable[Operator], TechniqueStep], Iterable[Operator]] = _same_operators
