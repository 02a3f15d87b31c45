"""The planning problem as paths of requests through replicas, with every way to fill a host as a column.

A request of a cell (service, region, moment, class) takes one path: an aggregated configuration in a pool, or
a prefill and a decode configuration in pools of one region. Flows on paths add up to the demand, headroom
included; a set of replicas carries flow / rate of its configuration at most; replicas fill the units of their
pool by packing patterns. The planner's program has loads, groups of pairs and host counts instead, all whole.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from tests.oracles.independent import money
from tests.oracles.independent.facts import AGGREGATED, DECODE, PREFILL, Engine, Facts, Moment, Service
from tests.oracles.independent.money import Usd
from tests.oracles.independent.pools import pools_of
from tests.oracles.independent.program import Program, Terms

SECONDS_PER_HOUR = 3600.0
MB_PER_GB = 1000.0

LOAD_UNITS_PER_REPLICA = 55_440
"""The planner decides loads in whole units of this size (planner/formulation/FORMULATION.md, Integers)."""


class Mode(StrEnum):
    """Treatment of limits that whole load units cannot meet exactly."""

    EXACT = "exact"
    """The limits as they are documented."""

    COARSE = "coarse"
    """Each load may waste a load unit: a plan that holds here can be written in the planner's integers."""

    LOOSE = "loose"
    """A share of a pool may be passed by a load unit of each load: the planner's integers hold here."""


Spot = tuple[int, int, int, int]
"""Service, configuration, pool and moment of a set of replicas, by position."""


@dataclass(frozen=True)
class Path:
    """Way to serve requests of a cell: one set of replicas, or one of each phase."""

    service: int
    moment: int
    region: str
    there: str
    name: str
    spots: tuple[Spot, ...]


@dataclass
class Formulation:
    """The program of a fleet with what each column costs."""

    facts: Facts
    mode: Mode = Mode.EXACT
    program: Program = field(default_factory=Program)
    usd: dict[object, Usd] = field(default_factory=dict)
    fixed: Usd = money.NOTHING
    paths: dict[object, Path] = field(default_factory=dict)
    carried: dict[Spot, Terms] = field(default_factory=lambda: defaultdict(dict))

    def __post_init__(self) -> None:
        self.pools = pools_of(self.facts)
        self.moments = self.facts.moments
        self._find_paths()
        # Replicas may wait idle: what runs in one moment may run in every other.
        for s, e, p, _ in list(self.carried):
            for m in range(len(self.moments)):
                self.carried[s, e, p, m] |= {}

    def engine(self, spot: Spot) -> Engine:
        """Configuration of a set of replicas."""
        return self.facts.services[spot[0]].engines[spot[1]]

    def most_replicas(self, spot: Spot) -> int:
        """Replicas that could serve everything there is in any moment: none are of use beyond."""
        s, e, _, _ = spot
        service, engine = self.facts.services[s], self.facts.services[s].engines[e]
        needs = [0.0]
        for moment in self.moments:
            needs.append(
                sum(
                    service.with_headroom(region, moment, name) / engine.rates[name]
                    for region, at, name in service.demand
                    if at == moment and engine.rates.get(name, 0.0) > 0
                )
            )
        waste = 1 + len(service.demand) / LOAD_UNITS_PER_REPLICA
        return math.ceil(max(needs) * waste + 1e-6)

    def _find_paths(self) -> None:
        for s, service in enumerate(self.facts.services):
            for (region, moment, name), demand in service.demand.items():
                if demand > 0:
                    m = self.moments.index(moment)
                    for there in service.served_from[region]:
                        for spots in self._chains(s, region, there, m, name):
                            self._add_path(Path(s, m, region, there, name, spots), moment, service)

    def _chains(self, s: int, region: str, there: str, m: int, name: str) -> Iterator[tuple[Spot, ...]]:
        """Sets of replicas that can serve a class from a region: one, or a pair that hands over."""
        service = self.facts.services[s]
        usable = [
            (s, e, p, m)
            for e, engine in enumerate(service.engines)
            for p, pool in enumerate(self.pools)
            if pool.region == there
            and pool.part == engine.part
            and engine.rates.get(name, 0.0) > 0
            and self._in_time(service, engine, region, there, name)
        ]
        yield from ((spot,) for spot in usable if self.engine(spot).phase == AGGREGATED)
        for first in usable:
            for second in usable:
                phases = (self.engine(first).phase, self.engine(second).phase)
                if phases == (PREFILL, DECODE) and self._hands_over(first, second):
                    yield first, second

    def _in_time(self, service: Service, engine: Engine, region: str, there: str, name: str) -> bool:
        if service.ttft_limit_ms is None or name not in engine.ttft_ms:
            return True
        way = 0.0 if region == there else self.facts.round_trip_ms.get(frozenset((region, there)), 0.0)
        return engine.ttft_ms[name] + service.outside_ms + way <= service.ttft_limit_ms

    def _hands_over(self, first: Spot, second: Spot) -> bool:
        policy = self.facts.policy
        if policy.kv_same_pool and first[2] != second[2]:
            return False
        one, other = (self.engine(spot).part for spot in (first, second))
        return policy.kv_pairs is None or one == other or (one, other) in policy.kv_pairs

    def _add_path(self, path: Path, moment: Moment, service: Service) -> None:
        key = ("flow", path)
        self.program.column(key)
        self.paths[key] = path
        self.usd[key] = Usd(operating=self._usd_per_rate(path, moment, service))
        for spot in path.spots:
            self.carried[spot][key] = 1 / self.engine(spot).rates[path.name]

    def _usd_per_rate(self, path: Path, moment: Moment, service: Service) -> float:
        """Return the energy and network cost of a planned request/s, without headroom."""
        facts = self.facts
        way = (
            facts.usd_per_gb.get(frozenset((path.region, path.there)), 0.0)
            if path.region != path.there
            else 0.0
        )
        gb_per_period = service.mb_per_request / MB_PER_GB * SECONDS_PER_HOUR * money.hours(facts)
        usd = way * gb_per_period * money.worth_at_end(facts, moment.period)
        for spot in path.spots:
            engine, pool = self.engine(spot), self.pools[spot[2]]
            if not pool.energy_included:
                per_kw = money.energy_usd_per_kw(facts, pool.region, moment.period)
                usd += self.busy_kw(engine) / engine.rates[path.name] * per_kw
        return usd * moment.weight / (1 + service.headroom)

    def busy_kw(self, engine: Engine) -> float:
        """Return the power of a replica at full load above its idle accelerators. [kW]"""
        return max(0.0, engine.kw - self.facts.parts[engine.part].idle_w * engine.size / money.WATTS_PER_KW)

    def state(self) -> None:
        """Add every column and row."""
        from tests.oracles.independent import rows_serving, rows_supply  # noqa: PLC0415

        rows_supply.add(self)
        rows_serving.add(self)

    def cost(self) -> Terms:
        """TCO by column. [USD]"""
        return {key: usd.total for key, usd in self.usd.items() if usd.total}
