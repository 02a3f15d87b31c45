"""Construction of candidates: configurations that meet the SLO and fit memory, without dominated ones.

Every rejected configuration is counted with its reason: memory, TTFT, TPOT, data type, policy, or dominance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from fleetplan.fleet.catalog.hardware_names import taken_for
from fleetplan.fleet.inventory import Fleet, Hardware
from fleetplan.fleet.tables import once_per_table
from fleetplan.perfmodel.evaluator import maturity_in_force
from fleetplan.perfmodel.optables.measured.folders import MISSING_TABLES, table_roots
from fleetplan.planner.candidates.assumptions import assumptions, feed_forward_weights
from fleetplan.planner.candidates.candidate_set import CandidateSet
from fleetplan.planner.candidates.dominance import prune_dominated
from fleetplan.planner.candidates.engine import engine_candidates, engine_rows
from fleetplan.planner.candidates.evaluations import Evaluations
from fleetplan.planner.candidates.parallel_evaluation import evaluating_in_parallel
from fleetplan.planner.candidates.remote import require_caches, ways_in_time, ways_ms
from fleetplan.planner.problem import Candidate, ConfigurationKey


def build_candidates(
    fleet: Fleet,
    announce: Callable[[str], None],
    keep: Collection[ConfigurationKey] = (),
    out_of_time: Callable[[], bool] = lambda: False,
) -> CandidateSet:
    """Return the candidates of every service on every hardware that the fleet owns or can acquire.

    Parameters
    ----------
    fleet : Fleet
        Resolved fleet.
    announce : callable
        Called with the service and hardware under evaluation.
    keep : Collection[ConfigurationKey]
        Configurations that stay even if dominated: those that already run.
    out_of_time : callable
        Checked before a service is evaluated on one hardware, and at every step; finished evaluations stay in
        the cache.

    Raises
    ------
    OutOfTimeError
        If time runs out before the last evaluation.
    InputError
        If a model has layers that the performance model does not support.
    """
    evaluations = Evaluations(fleet, announce, out_of_time, prunes=not keep)
    log, calibrator = evaluations.log, evaluations.calibrator
    found: list[Candidate] = []
    warnings: dict[str, None] = {}
    rows_in = once_per_table(engine_rows)
    with evaluating_in_parallel(fleet, evaluations.steps) as about_to_evaluate:
        for service, evaluated in evaluations.by_service(about_to_evaluate):
            own = evaluated
            if service.engines is not None:
                own = engine_candidates(fleet, service, rows_in(service.engines), log)
            elif own:
                warnings |= dict.fromkeys(assumptions(fleet, service))
            own = [_as_measured(each, service.rate_ratio.get(each.hardware, 1.0)) for each in own]
            ways = ways_in_time(service, ways_ms(fleet, service))
            found += prune_dominated(own, fleet.hardware, log, keep, ways)
    require_caches(fleet, found)
    software = {
        service.name: [(service.framework, weights) for weights in feed_forward_weights(fleet, service)]
        for service in fleet.services
        if service.engines is None
    }
    modelled = [each for each in found if each.service in software]
    run = dict.fromkeys((each.hardware, own) for each in modelled for own in software[each.service])
    for name, (framework, weights) in run:
        warnings |= dict.fromkeys(_maturity_warnings(fleet.hardware[name], framework, weights))
    for name in dict.fromkeys(each.hardware for each in found):
        if (meant := taken_for(name)) is not None:
            warnings[f"{name} is read as {meant}"] = None
    energy_counts = any(region.energy_usd_per_kwh is not None for region in fleet.regions)
    for candidate in found:
        if candidate.power_kw is None and energy_counts:
            warnings[f"{candidate.hardware}: no power figure: its energy costs nothing in the plan"] = None
    warnings |= dict.fromkeys(calibrator.warnings())
    warnings |= dict.fromkeys(_missing_tables(fleet, modelled))
    sources = tuple(evaluations.tables)
    return CandidateSet(tuple(found), log.rows(), sources, tuple(warnings), calibrator.used())


def _as_measured(candidate: Candidate, ratio: float) -> Candidate:
    """Return a candidate with its measured rates.

    A pool's load under latency limits is counted in replicas, and stays.
    """
    if ratio == 1.0:
        return candidate
    return replace(candidate, requests_per_s=tuple(rate * ratio for rate in candidate.requests_per_s))


def _missing_tables(fleet: Fleet, candidates: Iterable[Candidate]) -> list[str]:
    """Warn of accelerators that have measured tables, of which none are installed and configured."""
    if table_roots():
        return []
    parts = {
        name: fleet.hardware[name].accelerator for name in dict.fromkeys(each.hardware for each in candidates)
    }
    measured = [name for name, part in parts.items() if part is not None and part.measured_system is not None]
    return [MISSING_TABLES.format(parts=", ".join(measured))] if measured else []


def _maturity_warnings(hardware: Hardware, framework: str, weights: str) -> list[str]:
    """Warn of accelerators whose launches and gaps are scaled by a factor, with the factor's source."""
    part = hardware.accelerator
    if part is None or part.measured_system is not None:
        return []
    found = maturity_in_force(part.efficiency.maturity, framework, weights=weights)
    if found is None:
        return []
    of_weights = f" with weights in {found.weights}" if found.weights else ""
    return [
        f"{hardware.name}: launches and gaps under {framework}{of_weights} carry a maturity factor of "
        f"{found.factor:g} (software since {found.since}): {found.source}"
    ]
