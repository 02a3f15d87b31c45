"""Turn a plan's placements of a service in a region into a deployment to simulate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.fleet.inventory.techniques import PIPELINED_CHUNKS
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.parallelism import Configuration, Layouts, Parallelism
from fleetplan.perfmodel.replay import (
    Deployment,
    EngineGroup,
    PrefillGroup,
    PrefillPool,
    ServiceRun,
    deployed_engine,
)
from fleetplan.perfmodel.serving import Range, RequestKind, step_costs
from fleetplan.perfmodel.steps import ConfigurationBatch
from fleetplan.planner.candidates import (
    Calibrator,
    RejectionLog,
    request_kind,
    service_evaluator,
    service_variants,
)
from fleetplan.planner.plan import KvFlow, Placement
from fleetplan.planner.problem import Candidate, Phase, Problem
from fleetplan.planner.problem.kv_pairs import added_ms, links_between


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """Requests of one region that a placement serves.

    Attributes
    ----------
    way_ms : float
        Round trip to the region. [ms]
    rates_per_s : tuple[float, ...]
        Planned traffic by class. [requests/s]
    """

    way_ms: float
    rates_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ServedPlace:
    """A service in a region and moment of a plan; several regions if KV caches pass between them.

    Attributes
    ----------
    service : Service
        Service to simulate.
    region : str
        Region; names of several are joined with " + ".
    rows : tuple[Placement, ...]
        Placements with traffic.
    kinds : tuple[RequestKind, ...]
        Requests by class.
    rates_per_s : tuple[float, ...]
        Planned traffic by class. [requests/s]
    flows : tuple[KvFlow, ...]
        KV flows between its pools, if the plan states them.
    origins : tuple[tuple[RequestOrigin, ...], ...]
        Origins of the requests of each placement that receives them first: aggregated ones, then prefill, in
        the order of `rows`.
    """

    service: Service
    region: str
    rows: tuple[Placement, ...]
    kinds: tuple[RequestKind, ...]
    rates_per_s: tuple[float, ...]
    flows: tuple[KvFlow, ...] = ()
    origins: tuple[tuple[RequestOrigin, ...], ...] = ()

    def ways_ms(self, run: ServiceRun, seed: int) -> FloatArray:
        """Return the round trip of each request to its region of origin, drawn as planned. [ms]

        Parameters
        ----------
        run : ServiceRun
            Run with the placement of each request.
        seed : int
            Seed of the draw.

        Returns
        -------
        FloatArray
            Round trips, shape (n_requests,).
        """
        random = np.random.default_rng([seed, len(run.requests)])
        found = np.zeros(len(run.requests))
        for position, origins in enumerate(self.origins):
            taken = run.first_group == position
            for k in range(len(self.kinds)):
                rates = np.array([origin.rates_per_s[k] for origin in origins])
                if len(origins) > 1 and rates.sum() > 0:
                    rows = np.flatnonzero(taken & (run.requests.classes == k))
                    ways = [origin.way_ms for origin in origins]
                    found[rows] = random.choice(ways, size=rows.size, p=rates / rates.sum())
        return found


def served_places(
    problem: Problem, rows: Sequence[Placement], flows: Sequence[KvFlow] = ()
) -> list[ServedPlace]:
    """Return the services with models by serving region, in the order of the plan.

    Regions that transfer KV caches between each other serve together: one prefills, another decodes. Services
    with their own rates have no iterations to simulate and are left out.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    rows, flows : Sequence[Placement], Sequence[KvFlow]
        Placements and flows of one moment.
    """
    together = _regions_together(problem, flows)
    grouped: dict[tuple[str, tuple[str, ...]], list[Placement]] = {}
    for row in rows:
        if problem.services[row.service].model is not None and row.requests_per_s > 0:
            regions = together.get((row.service, row.region), (row.region,))
            grouped.setdefault((row.service, regions), []).append(row)
    found = []
    for (name, regions), own in grouped.items():
        service = problem.services[name]
        rates = tuple(
            sum(row.requests_per_s_by_class.get(each.name, 0.0) for row in own if row.phase != Phase.DECODE)
            for each in service.classes
        )
        kinds = tuple(request_kind(each, service.traffic) for each in service.classes)
        pools = {row.pool for row in own}
        passed = tuple(flow for flow in flows if flow.service == name and flow.prefill_pool in pools)
        first = [row for phase in (Phase.AGGREGATED, Phase.PREFILL) for row in own if row.phase == phase]
        origins = tuple(_origins(problem, row) for row in first)
        found.append(ServedPlace(service, " + ".join(regions), tuple(own), kinds, rates, passed, origins))
    return found


def _origins(problem: Problem, row: Placement) -> tuple[RequestOrigin, ...]:
    """Return the regions whose requests a placement serves, its own first."""
    names = [each.name for each in problem.services[row.service].classes]
    others = row.requests_per_s_by_origin
    elsewhere = tuple(
        RequestOrigin(
            problem.round_trip_ms(origin, row.region), tuple(rates.get(name, 0.0) for name in names)
        )
        for origin, rates in others.items()
    )
    here = tuple(
        max(0.0, row.requests_per_s_by_class.get(name, 0.0) - sum(each.rates_per_s[k] for each in elsewhere))
        for k, name in enumerate(names)
    )
    return (RequestOrigin(0.0, here), *elsewhere)


def _regions_together(problem: Problem, flows: Sequence[KvFlow]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the regions that serve together, for each service and region that sends or receives caches."""
    region_of = {pool.name: pool.region for pool in problem.pools}
    together: dict[tuple[str, str], tuple[str, ...]] = {}
    for flow in flows:
        ends = {region_of[flow.prefill_pool], region_of[flow.decode_pool]}
        if len(ends) < 2:
            continue
        for end in tuple(ends):
            ends |= set(together.get((flow.service, end), ()))
        joined = tuple(region for region in problem.regions if region in ends)
        together |= {(flow.service, region): joined for region in joined}
    return together


class DeploymentBuilder:
    """Builds engines and pools from placements; each distinct configuration is evaluated once.

    Parameters
    ----------
    fleet : Fleet
        Resolved fleet.
    problem : Problem
        Problem with candidates, for their batches.
    """

    def __init__(self, fleet: Fleet, problem: Problem) -> None:
        self._fleet = fleet
        self._problem = problem
        self._candidates: Mapping[tuple[str, str, str, str], Candidate] = {
            candidate.key: candidate for candidate in problem.candidates
        }
        self._calibrator = Calibrator(fleet)
        self._evaluators: dict[tuple[str, str, str], Evaluator] = {}

    def deployment(self, place: ServedPlace) -> Deployment:
        """Return the groups of a place, each with its planned traffic by class."""
        prefill: list[PrefillGroup] = []
        decode: list[EngineGroup] = []
        aggregated: list[EngineGroup] = []
        for row in place.rows:
            if row.phase == Phase.PREFILL:
                prefill.append(self._prefill_group(place, row))
            else:
                target = decode if row.phase == Phase.DECODE else aggregated
                target.append(self._engine_group(place, row))
        return Deployment(tuple(aggregated), tuple(prefill), tuple(decode))

    def _engine_group(self, place: ServedPlace, row: Placement) -> EngineGroup:
        batch, evaluator, layout = self._configured(place, row)
        engine = deployed_engine(
            evaluator,
            layout,
            batch,
            _longest_tokens(place),
            place.service.framework,
            _session_tokens(place),
        )
        engines = row.replicas * layout.dp * layout.pp
        return EngineGroup(_label(row), engine, engines, _rates(place, row))

    def _prefill_group(self, place: ServedPlace, row: Placement) -> PrefillGroup:
        batch, evaluator, layout = self._configured(place, row)
        # Prompts run whole unless the service uses chunked prefill.
        chunk = evaluator.techniques.chunk_tokens or 1
        reach = max(chunk, batch * max(kind.input_tokens for kind in place.kinds), _longest_tokens(place))
        costs = step_costs(evaluator, layout, Range(1, reach, _longest_tokens(place)))
        pool = PrefillPool(
            costs=costs,
            replicas=row.replicas,
            batch=batch,
            ranks=layout.dp,
            stages=layout.pp,
            chunk_tokens=evaluator.techniques.chunk_tokens or reach,
            transfer_ms_per_token=_transfer_ms_per_token(evaluator, layout, place),
            way_ms=self._way_ms(place, row),
            pipelined=evaluator.techniques.chunk_tokens is not None
            and place.service.framework in PIPELINED_CHUNKS,
        )
        return PrefillGroup(_label(row), pool, _rates(place, row))

    def _way_ms(self, place: ServedPlace, row: Placement) -> float:
        """Return the mean time that links add to the transfers of a prefill placement. [ms]"""
        index_of = {pool.name: index for index, pool in enumerate(self._problem.pools)}
        total = weight = 0.0
        for flow in place.flows:
            if (flow.prefill_pool, flow.prefill_config) == (row.pool, row.config):
                ends = index_of[flow.prefill_pool], index_of[flow.decode_pool]
                links = links_between(self._problem, *ends) or ()
                total += flow.requests_per_s * added_ms(self._problem, links)
                weight += flow.requests_per_s
        return total / weight if weight else 0.0

    def _configured(self, place: ServedPlace, row: Placement) -> tuple[int, Evaluator, Parallelism]:
        """Return batch, evaluator and layout of a placement."""
        configuration = Configuration.parse(row.config)
        batch = configuration.batch
        if batch is None:
            batch = _largest_batch(self._candidates[row.key])
        key = (row.service, configuration.variant, row.hardware)
        if key not in self._evaluators:
            service = _as_served(place.service, configuration.variant, row.hardware)
            plain = service_evaluator(self._fleet, service, self._fleet.hardware[row.hardware])
            self._evaluators[key] = self._calibrator.apply(plain, service.framework)
        return batch, self._evaluators[key], configuration.layout


def _as_served(service: Service, variant: str, hardware: str) -> Service:
    """Return the service with one of its variants."""
    served = dict(service_variants(service, hardware, RejectionLog()))
    return served[variant]


def _largest_batch(candidate: Candidate) -> int:
    """Return the largest batch of a rank and micro-batch over the classes; any class may fill it alone."""
    known = [batch for batch in candidate.batch if batch is not None]
    if not known:
        raise ValueError(f"{candidate.label} has no batch")
    return max(known)


def _longest_tokens(place: ServedPlace) -> int:
    return max(kind.longest_tokens for kind in place.kinds)


def _session_tokens(place: ServedPlace) -> int:
    """Return the mean tokens that a session keeps between its requests. [tokens]"""
    return max(kind.prefix_tokens for kind in place.kinds)


def _rates(place: ServedPlace, row: Placement) -> tuple[float, ...]:
    return tuple(row.requests_per_s_by_class.get(each.name, 0.0) for each in place.service.classes)


def _label(row: Placement) -> str:
    return f"{row.pool} {row.replicas}x {row.config} {row.hardware}"


def _transfer_ms_per_token(evaluator: Evaluator, layout: Parallelism, place: ServedPlace) -> float:
    """Return the time that a cache transfer adds per prompt token, at the mean prompt. [ms]"""
    kind = max(place.kinds, key=lambda each: each.prefix_tokens + each.input_tokens)
    tokens = kind.prefix_tokens + kind.input_tokens

    def one(value: int) -> np.ndarray:
        return np.array([value], dtype=np.int64)

    batch = ConfigurationBatch(
        Layouts.of([layout]), one(1), one(kind.input_tokens), one(kind.prefix_tokens), one(tokens), one(1)
    )
    computed = evaluator.prefill(batch).latency_ms
    return float(evaluator.kv_transfer_ms(batch, computed)[0]) / tokens
