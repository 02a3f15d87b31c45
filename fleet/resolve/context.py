"""Shared state of resolving a fleet file: its names and issues."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fleetplan.fleet.catalog.hardware_names import hardware_called, hardware_hint
from fleetplan.fleet.document import Document, KeyPath
from fleetplan.fleet.errors import Issue, names_hint
from fleetplan.fleet.input_files import read_bytes
from fleetplan.fleet.inventory import DemandScenario, Slice
from fleetplan.fleet.inventory.periods import QUARTERS, Calendar
from fleetplan.fleet.resolve.day_shapes import DayShape
from fleetplan.fleet.tables import once_per_table

if TYPE_CHECKING:
    import pandas as pd

_ValueT = TypeVar("_ValueT")


def _classes_in(table: pd.DataFrame) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(name) for name in table["class"]))


@dataclass(slots=True)
class Context:
    """Names to resolve against; collects issues and warnings.

    Attributes
    ----------
    document : Document
        The file, for the places of its values.
    periods : tuple[str, ...]
        The horizon, with its extension.
    calendar : Calendar
        Length and names of its periods.
    region_names, hardware_names : tuple[str, ...]
        Every name that the file or the catalogue defines, broken blocks included, so that a mistake in a
        block is reported once and not again wherever the block is named.
    slices : tuple[Slice, ...]
        Slices of the day; empty without slices.
    scenarios : tuple[DemandScenario, ...]
        Demand scenarios; those of estimates if the file names none.
    day_shapes : Mapping[str, DayShape]
        Shapes of the day by name.
    issues : list[Issue]
        Issues so far.
    warnings : list[str]
        Keys without effect, and assumptions.
    extended_by : int
        Periods of the extension, which repeat the last stated one.
    hashes : dict[str, str]
        SHA-256 of further files.
    engine_tables : dict[str, DataFrame]
        Valid engine tables by file; many services may name the same one.
    classes_in : callable
        Request classes of an engine table, in the order of its rows.
    """

    document: Document
    periods: tuple[str, ...]
    region_names: tuple[str, ...]
    hardware_names: tuple[str, ...]
    calendar: Calendar = QUARTERS
    slices: tuple[Slice, ...] = ()
    scenarios: tuple[DemandScenario, ...] = ()
    day_shapes: Mapping[str, DayShape] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    extended_by: int = 0
    hashes: dict[str, str] = field(default_factory=dict)
    engine_tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    classes_in: Callable[[pd.DataFrame], tuple[str, ...]] = field(
        default_factory=lambda: once_per_table(_classes_in)
    )

    @property
    def stated(self) -> tuple[str, ...]:
        """Periods that the file states, without the extension."""
        return self.periods[: len(self.periods) - self.extended_by]

    def extended(self, values: Sequence[_ValueT]) -> tuple[_ValueT, ...]:
        """Extend values of the stated periods to all periods, repeating the last one."""
        return (*values, *itertools.repeat(values[-1], self.extended_by))

    def error(self, key_path: KeyPath, message: str, hint: str = "", *, at_key: bool = False) -> None:
        """Note an issue at a path of the document."""
        self.issues.append(self.document.issue(key_path, message, hint, at_key=at_key))

    def warn(self, key_path: KeyPath, message: str) -> None:
        """Note a warning about a path of the document, at most once."""
        label = self.document.label(key_path)
        text = f"{label}: {message}" if label else message
        if text not in self.warnings:
            self.warnings.append(text)

    def hardware_name(self, name: str) -> str:
        """Return the catalogue's name of hardware; names defined in the file and unknown names stay."""
        return hardware_called(name, self.hardware_names)

    def check_hardware(self, key_path: KeyPath, name: str) -> bool:
        """Return whether hardware exists; note an issue if not."""
        if name in self.hardware_names:
            return True
        self.error(key_path, f"there is no hardware {name!r}", hardware_hint(name, self.hardware_names))
        return False

    def check_name(
        self, key_path: KeyPath, kind: str, name: str, known: Sequence[str], *, at_key: bool = False
    ) -> bool:
        """Return whether `name` is known; note an issue if not."""
        if name in known:
            return True
        self.error(key_path, f"there is no {kind} {name!r}", names_hint(name, known), at_key=at_key)
        return False

    def readable_file(self, key_path: KeyPath, reference: str) -> Path | None:
        """Return the file that a value names and keep its hash; note an issue if it cannot be read."""
        path = Path(self.document.place(key_path).file).parent / reference
        try:
            content = read_bytes(path)
        except OSError as error:
            hint = "the path is relative to this file"
            self.error(key_path, f"{path} cannot be read: {error.strerror}", hint)
            return None
        self.hashes[str(path)] = hashlib.sha256(content).hexdigest()
        return path

    def source(self, key_path: KeyPath) -> str:
        """Return the place of a value, with its file relative to the fleet file, for provenance."""
        place = self.document.place(key_path)
        name = os.path.relpath(place.file, self.document.path.parent) if place.line else place.file
        return f"{Path(name).as_posix()}:{place.line}" if place.line else name

    def region(self, key_path: KeyPath, name: str | None, key: str = "region") -> str | None:
        """Return the region of a block; the only region if the block names none.

        Parameters
        ----------
        key_path : KeyPath
            The block.
        name : str or None
            Its value.
        key : str
            Its key.
        """
        if name is not None:
            known = self.check_name((*key_path, key), "region", name, self.region_names)
            return name if known else None
        if len(self.region_names) == 1:
            return self.region_names[0]
        self.error((*key_path, key), "is missing", f"allowed: {', '.join(self.region_names)}")
        return None

    def numbers(
        self, key_path: KeyPath, value: float | Mapping[str, float] | None
    ) -> tuple[float, ...] | None:
        """Return one number per period, from a value given once or for every period."""
        if value is None:
            return None
        if not isinstance(value, Mapping):
            return (float(value),) * len(self.periods)
        self.check_periods(key_path, value)
        missing = [period for period in self.stated if period not in value]
        if missing:
            self.error(key_path, f"has no value for {', '.join(missing)}", "give every period of the horizon")
            return None
        return self.extended([float(value[period]) for period in self.stated])

    def check_periods(self, key_path: KeyPath, by_period: Mapping[str, object]) -> None:
        """Note an issue for every key that is no period of the horizon."""
        for period in by_period:
            self.check_name((*key_path, period), "period", period, self.stated, at_key=True)
