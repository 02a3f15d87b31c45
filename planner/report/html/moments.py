"""When a plan runs what: its placements by the moments that it tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleetplan.planner.plan import MomentKey, Placement, Plan


@dataclass(frozen=True, slots=True)
class MomentView:
    """A time for which a plan places replicas.

    Attributes
    ----------
    label : str
        What tells it from the others.
    key : MomentKey
        Period, slice, demand scenario.
    placements : tuple[Placement, ...]
        What runs then.
    """

    label: str
    key: MomentKey
    placements: tuple[Placement, ...]


def moments(plan: Plan) -> tuple[MomentView, ...]:
    """Every moment of a plan, in the order of its periods."""
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
    """Position of each name by its first appearance; the same name has the same colour everywhere."""
    return {name: index for index, name in enumerate(dict.fromkeys(names))}
