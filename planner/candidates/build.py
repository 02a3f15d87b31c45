"""Candidates: the configurations that meet the SLO and fit memory, pruned only where that is exact.

Every configuration that is left out keeps its reason: memory, TTFT, TPOT, data type, policy, or the
candidate that dominates it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet, Hardware
from fleetplan.perfmodel.architecture import UnsupportedArchitecture
from fleetplan.perfmodel.evaluator import maturity_in_force
from fleetplan.perfmodel.optables.measured.folders import MISSING_TABLES, table_roots
from fleetplan.planner.candidates.assumptions import assumptions
from fleetplan.planner.candidates.calibrations import Calibrator
from fleetplan.planner.candidates.dominance import prune_dominated
from fleetplan.planner.candidates.engine import engine_candidates
from fleetplan.planner.candidates.figures import supplied_hardware
from fleetplan.planner.candidates.landscape import candidates_over_ways
from fleetplan.planner.candidates.rejections import NOT_ALLOWED, RejectionLog
from fleetplan.planner.candidates.remote import require_caches, ways_in_time, ways_ms
from fleetplan.planner.candidates.variants import service_variants
from fleetplan.planner.plan import CalibrationUse, Rejections, StatedTable
from fleetplan.planner.problem import Candidate, ConfigurationKey


class OutOfTimeError(Exception):
    """The time was over before every service was evaluated on every hardware."""


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Candidates with what was left out.

    Attributes
    ----------
    candidates : tuple[Candidate, ...]
        In the order of services, phases, hardware.
    rejections : tuple[Rejections, ...]
        Counts of excluded configurations by service and reason.
    table_sources : tuple[StatedTable, ...]
        Operator tables behind the rates.
    warnings : tuple[str, ...]
        What was assumed.
    calibrations : tuple[CalibrationUse, ...]
        Calibrations behind the rates.
    """

    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejections, ...]
    table_sources: tuple[StatedTable, ...]
    warnings: tuple[str, ...]
    calibrations: tuple[CalibrationUse, ...] = ()


def build_candidates(
    fleet: Fleet,
    announce: Callable[[str], None],
    keep: Collection[ConfigurationKey] = (),
    out_of_time: Callable[[], bool] = lambda: False,
) -> CandidateSet:
    """Candidates of every service on every hardware that the fleet has or can get.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    announce : callable
        Told which service is being evaluated.
    keep : Collection[ConfigurationKey]
        Configurations that stay even where others dominate them: those that run already.
    out_of_time : callable
        Asked before a service is evaluated on one hardware; what was evaluated before stays in the cache.

    Raises
    ------
    OutOfTimeError
        If the time is over before the last of them.
    InputError
        If a model has layers that the performance model does not know.
    """
    log = RejectionLog()
    found: list[Candidate] = []
    tables: dict[StatedTable, None] = {}
    warnings: dict[str, None] = {}
    supplied = supplied_hardware(fleet)
    calibrator = Calibrator(fleet)
    asked = _evaluations(fleet, supplied)
    evaluated = 0
    for index, service in enumerate(fleet.services):
        announce(f"evaluating {service.name} ({index + 1} of {len(fleet.services)})")
        if service.engines is not None:
            own = engine_candidates(fleet, service, log)
        else:
            own = []
            for name in supplied:
                hardware = fleet.hardware[name]
                if service.allowed_hardware is not None and name not in service.allowed_hardware:
                    log.add(service.name, name, NOT_ALLOWED)
                    continue
                if hardware.accelerator is None:
                    log.add(service.name, name, "no figures and no engine table")
                    continue
                if out_of_time():
                    raise OutOfTimeError(
                        f"{evaluated} of {asked} pairs of a service and hardware evaluated and kept"
                    )
                evaluated += 1
                for variant_name, variant in service_variants(service, name, log):
                    try:
                        candidates, sources = candidates_over_ways(fleet, variant, hardware, log, calibrator)
                    except UnsupportedArchitecture as error:
                        place = f"services.{service.name}.model"
                        raise InputError([Issue(str(fleet.path), 1, 1, place, str(error))]) from error
                    own += [
                        each.running(replace(each.configuration, variant=variant_name))
                        for each in candidates
                        if each.configuration is not None
                    ]
                    tables.update(dict.fromkeys(sources))
            if own:
                warnings |= dict.fromkeys(assumptions(fleet, service))
        own = [_as_measured(each, service.rate_ratio.get(each.hardware, 1.0)) for each in own]
        ways = ways_in_time(service, ways_ms(fleet, service))
        found += prune_dominated(own, fleet.hardware, log, keep, ways)
    require_caches(fleet, found)
    frameworks = {service.name: service.framework for service in fleet.services}
    for name, framework in dict.fromkeys((each.hardware, frameworks[each.service]) for each in found):
        warnings |= dict.fromkeys(_maturity_warnings(fleet.hardware[name], framework))
    energy_counts = any(region.energy_usd_per_kwh is not None for region in fleet.regions)
    for candidate in found:
        if candidate.power_kw is None and energy_counts:
            warnings[f"{candidate.hardware}: no power figure, so its energy is not priced"] = None
    warnings |= dict.fromkeys(calibrator.warnings())
    warnings |= dict.fromkeys(_missing_tables(fleet, found))
    return CandidateSet(tuple(found), log.rows(), tuple(tables), tuple(warnings), calibrator.used())


def _evaluations(fleet: Fleet, supplied: Collection[str]) -> int:
    """Pairs of a service and hardware that the performance model evaluates."""
    return sum(
        service.engines is None
        and (service.allowed_hardware is None or name in service.allowed_hardware)
        and fleet.hardware[name].accelerator is not None
        for service in fleet.services
        for name in supplied
    )


def _as_measured(candidate: Candidate, ratio: float) -> Candidate:
    """Return a candidate with its measured rates. A pool's load under limits is in replicas, and stays."""
    if ratio == 1.0:
        return candidate
    return replace(candidate, requests_per_s=tuple(rate * ratio for rate in candidate.requests_per_s))


def _missing_tables(fleet: Fleet, candidates: Iterable[Candidate]) -> list[str]:
    """Warn of parts with measured tables where none are installed and none are named."""
    if table_roots():
        return []
    parts = {
        name: fleet.hardware[name].accelerator for name in dict.fromkeys(each.hardware for each in candidates)
    }
    measured = [name for name, part in parts.items() if part is not None and part.measured_system is not None]
    return [MISSING_TABLES.format(parts=", ".join(measured))] if measured else []


def _maturity_warnings(hardware: Hardware, framework: str) -> list[str]:
    """Warn of parts whose launches and gaps are scaled by a factor, with the source of the factor."""
    part = hardware.accelerator
    if part is None or part.measured_system is not None:
        return []
    found = maturity_in_force(part.efficiency.maturity, framework)
    if found is None:
        return []
    return [
        f"{hardware.name}: launches and gaps under {framework} carry a maturity factor of {found.factor:g} "
        f"(software since {found.since}): {found.source}"
    ]
