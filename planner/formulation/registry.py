"""Decision groups: the meaning of their keys, read from the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from fleetplan.planner.problem import Problem, Slot

_GROUP: Final = "group"
"""Metadata key of a field's group."""


class KeyPart(Enum):
    """Meaning of one part of a variable's key: an index into the problem, or a name."""

    CANDIDATE = auto()
    POOL = auto()
    MOMENT = auto()
    CELL = auto()
    SERVICE = auto()
    REGION = auto()
    OTHER = auto()
    """A class, pair, lost region, period, offer, line or pattern."""


class DecisionPlace(NamedTuple):
    """Service, moment and slot of a decision.

    Attributes
    ----------
    service : str or None
        Service that it places; None for supply and for what services share.
    moment : int or None
        Moment index; None if it concerns several.
    slot : Slot or None
        Candidate and pool whose use it decides.
    home : int or None
        Index of the moment whose offline work it keeps in that moment.
    region : str or None
        Region of its pool, else of its demand; None if it concerns several.
    """

    service: str | None = None
    moment: int | None = None
    slot: Slot | None = None
    home: int | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionGroup:
    """One group of decisions.

    Attributes
    ----------
    name : str
        Name of the field of `Decisions`.
    key : tuple[KeyPart, ...]
        Meaning of the parts of a variable's key.
    continuous : bool
        Whether a relaxation may use fractions: loads and rates, which are finely divided.
    kept : bool
        Whether its values are part of a plan, so that a `Solution` stores them.
    growth : int
        1 if increasing it adds supply, -1 if decreasing it does, 0 if it is no supply.
    """

    name: str
    key: tuple[KeyPart, ...]
    continuous: bool = False
    kept: bool = False
    growth: int = 0

    def placer(self, problem: Problem) -> Callable[[tuple[Any, ...]], DecisionPlace]:
        """Return a function that reads a decision's place from its key.

        Work deferred from one cell to another belongs to no single moment.
        """
        at = {part: position for position, part in enumerate(self.key)}
        c, p, m, i = (
            at.get(part) for part in (KeyPart.CANDIDATE, KeyPart.POOL, KeyPart.MOMENT, KeyPart.CELL)
        )
        if self.key.count(KeyPart.CELL) > 1:

            def of_work(key: tuple[Any, ...]) -> DecisionPlace:
                cell = problem.cells[key[0]]
                home = cell.moment if key[0] == key[1] else None
                return DecisionPlace(cell.service, home=home, region=cell.region)

            return of_work

        def of(key: tuple[Any, ...]) -> DecisionPlace:
            cell = None if i is None else problem.cells[key[i]]
            service: str | None = key[at[KeyPart.SERVICE]] if KeyPart.SERVICE in at else None
            if c is not None:
                service = problem.candidates[key[c]].service
            elif cell is not None:
                service = cell.service
            moment = cell.moment if cell is not None else None if m is None else key[m]
            region: str | None = key[at[KeyPart.REGION]] if KeyPart.REGION in at else None
            if p is not None:
                region = problem.pools[key[p]].region
            elif cell is not None:
                region = cell.region
            slot = None if c is None or p is None else (key[c], key[p])
            return DecisionPlace(service, moment, slot, region=region)

        return of

    def renumbered(
        self,
        values: Mapping[Any, int],
        moments: Sequence[int] | None = None,
        cells: Sequence[int] | None = None,
    ) -> dict[Any, int]:
        """Return the values of a part of a problem by the keys of the whole.

        Parameters
        ----------
        values : Mapping
            Values by the keys of the part.
        moments, cells : Sequence[int] or None
            Index in the whole of each moment and cell of the part; None if they are the same.
        """
        number = {KeyPart.MOMENT: moments, KeyPart.CELL: cells}
        maps = [number.get(part) for part in self.key]
        return {
            tuple(each if new is None else new[each] for new, each in zip(maps, key, strict=True)): value
            for key, value in values.items()
        }

    def of_part(self, values: Mapping[Any, int], cells: Sequence[int]) -> dict[Any, int]:
        """Return the values of the whole by the keys of a part, without those of other cells.

        Parameters
        ----------
        values : Mapping
            Values by the keys of the whole.
        cells : Sequence[int]
            Index in the whole of each cell of the part.
        """
        index = {whole: own for own, whole in enumerate(cells)}
        at = [place for place, part in enumerate(self.key) if part is KeyPart.CELL]
        return {
            tuple(index[each] if place in at else each for place, each in enumerate(key)): value
            for key, value in values.items()
            if all(key[place] in index for place in at)
        }


def decided(*key: KeyPart, continuous: bool = False, kept: bool = False, growth: int = 0) -> Any:
    """Return a dataclass field of decisions by key; arguments as in `DecisionGroup`."""
    said = {"key": key, "continuous": continuous, "kept": kept, "growth": growth}
    return field(default_factory=dict, metadata={_GROUP: said})


def groups_of(kind: type) -> Iterator[DecisionGroup]:
    """Yield the groups that the fields of a dataclass declare, in order."""
    for each in fields(kind):
        if _GROUP in each.metadata:
            yield DecisionGroup(each.name, **each.metadata[_GROUP])
