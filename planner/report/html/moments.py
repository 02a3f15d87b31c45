"""Placements of a plan grouped by moment: period, slice of the day and demand scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleetplan.planner.plan import MomentKey, Placement, Plan


@dataclass(frozen=True, slots=True)
class MomentView:
    """One moment of a plan.

    Attributes
    ----------
    label : str
        Text that distinguishes the moment from the others.
    key : MomentKey
        Period, slice, demand scenario.
    placements : tuple[Placement, ...]
        Placements in this moment.
    """

    label: str
    key: MomentKey
    placements: tuple[Placement, ...]


def moments(plan: Plan) -> tuple[MomentView, ...]:
    """Return every moment of a plan, in the order of its periods."""
    keys = dict.fromkeys(row.moment_key for row in (*plan.pools, *plan.placements))
    return tuple(
        MomentView(
            " ".join(part for part in key if part),
            key,
            tuple(row for row in plan.placements if row.moment_key == key),
        )
        for key in sorted(keys, key=lambda key: plan.periods.index(key[0]))
    )


def in_order(names: Sequence[str]) -> dict[str, int]:
    """Return the index of each name by first appearance, for the same colour in every figure."""
    return {name: index for index, name in enumerate(dict.fromkeys(names))}
