"""Reasons for rejecting configurations, counted by service, hardware and reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from fleetplan.planner.plan import Rejections

DOMINATED = "dominated"
NOT_ALLOWED = "hardware not allowed"
NO_FRAMEWORK = "framework does not run on it"
BELOW_QUALITY_FLOOR = "variant below the quality floor"
NO_SUPPLY = "no pool or offer"
UNDER_LOAD = "limits under load"


class RejectionLog:
    """Counter of rejected configurations by service, hardware and reason.

    Parameters
    ----------
    services : Iterable[str]
        Services whose rows come first, in this order.
    """

    def __init__(self, services: Iterable[str] = ()) -> None:
        self._counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for name in services:
            self._counts[name].clear()

    def add(self, service: str, hardware: str, reason: str, count: int = 1) -> None:
        """Count configurations rejected for one reason."""
        if count:
            self._counts[service][hardware][reason] += count

    def rows(self) -> tuple[Rejections, ...]:
        """Return all counts as rows of the plan."""
        rows = []
        for service, by_hardware in self._counts.items():
            if not by_hardware:
                continue
            total: Counter[str] = sum(by_hardware.values(), Counter())
            rows.append(
                Rejections(
                    service=service,
                    counts=dict(sorted(total.items())),
                    by_hardware={name: dict(counts) for name, counts in sorted(by_hardware.items())},
                )
            )
        return tuple(rows)
