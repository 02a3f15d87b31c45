"""Candidates: the configurations that meet the SLO and fit memory, pruned only where that is exact.

Every configuration that is left out keeps its reason: memory, TTFT, TPOT, data type, policy, or the
candidate that dominates it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet, Hardware, Service
from fleetplan.fleet.tables import once_per_table
from fleetplan.perfmodel.architecture import UnsupportedArchitecture
from fleetplan.perfmodel.evaluator import maturity_in_force
from fleetplan.perfmodel.interruption import WorkInterruptedError, interruptible
from fleetplan.perfmodel.optables.measured.folders import MISSING_TABLES, table_roots
from fleetplan.planner.candidates.ahead import evaluating_ahead
from fleetplan.planner.candidates.assumptions import assumptions, feed_forward_weights
from fleetplan.planner.candidates.calibrations import Calibrator
from fleetplan.planner.candidates.candidate_set import CandidateSet
from fleetplan.planner.candidates.dominance import prune_dominated
from fleetplan.planner.candidates.engine import engine_candidates, engine_rows
from fleetplan.planner.candidates.figures import supplied_hardware
from fleetplan.planner.candidates.out_of_time import OutOfTimeError
from fleetplan.planner.candidates.rejections import NOT_ALLOWED, RejectionLog
from fleetplan.planner.candidates.remote import candidates_over_ways, require_caches, ways_in_time, ways_ms
from fleetplan.planner.candidates.variants import service_variants
from fleetplan.planner.plan import StatedTable
from fleetplan.planner.problem import Candidate, ConfigurationKey
from fleetplan.planner.problem.places_in_file import service_issue


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
        Asked before a service is evaluated on one hardware and at every step of that; what was evaluated
        before stays in the cache.

    Raises
    ------
    OutOfTimeError
        If the time is over before the last of them.
    InputError
        If a model has layers that the performance model does not know.
    """
    supplied = supplied_hardware(fleet)
    evaluations = _Evaluations(fleet, supplied, out_of_time)
    log, calibrator = evaluations.log, evaluations.calibrator
    found: list[Candidate] = []
    warnings: dict[str, None] = {}
    rows_in = once_per_table(engine_rows)
    with evaluating_ahead(fleet) as about_to_evaluate:
        for index, service in enumerate(fleet.services):
            announce(f"evaluating {service.name} ({index + 1} of {len(fleet.services)})")
            if service.engines is not None:
                own = engine_candidates(fleet, service, rows_in(service.engines), log)
            else:
                own = []
                for name in supplied:
                    about_to_evaluate(len(fleet.services) - index)
                    own += evaluations.on(service, fleet.hardware[name])
                if own:
                    warnings |= dict.fromkeys(assumptions(fleet, service))
            own = [_as_measured(each, service.rate_ratio.get(each.hardware, 1.0)) for each in own]
            ways = ways_in_time(service, ways_ms(fleet, service))
            found += prune_dominated(own, fleet.hardware, log, keep, ways)
    require_caches(fleet, found)
    software = {
        service.name: [(service.framework, weights) for weights in feed_forward_weights(fleet, service)]
        for service in fleet.services
    }
    run = dict.fromkeys((each.hardware, own) for each in found for own in software[each.service])
    for name, (framework, weights) in run:
        warnings |= dict.fromkeys(_maturity_warnings(fleet.hardware[name], framework, weights))
    energy_counts = any(region.energy_usd_per_kwh is not None for region in fleet.regions)
    for candidate in found:
        if candidate.power_kw is None and energy_counts:
            warnings[f"{candidate.hardware}: no power figure, so its energy is not priced"] = None
    warnings |= dict.fromkeys(calibrator.warnings())
    warnings |= dict.fromkeys(_missing_tables(fleet, found))
    sources = tuple(evaluations.tables)
    return CandidateSet(tuple(found), log.rows(), sources, tuple(warnings), calibrator.used())


class _Evaluations:
    """What the performance model says of services on hardware, as long as there is time."""

    def __init__(self, fleet: Fleet, supplied: Collection[str], out_of_time: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._out_of_time = out_of_time
        self._done = 0
        self._asked = sum(
            self._refusal(service, fleet.hardware[name]) is None
            for service in fleet.services
            for name in supplied
            if service.engines is None
        )
        self.log = RejectionLog()
        self.calibrator = Calibrator(fleet)
        self.tables: dict[StatedTable, None] = {}

    @staticmethod
    def _refusal(service: Service, hardware: Hardware) -> str | None:
        """Why a service is not evaluated on some hardware; None where it is."""
        if service.allowed_hardware is not None and hardware.name not in service.allowed_hardware:
            return NOT_ALLOWED
        return "no figures and no engine table" if hardware.accelerator is None else None

    def on(self, service: Service, hardware: Hardware) -> list[Candidate]:
        """Candidates of a service on some hardware; raises as `build_candidates`."""
        refusal = self._refusal(service, hardware)
        if refusal is not None:
            self.log.add(service.name, hardware.name, refusal)
            return []
        if self._out_of_time():
            raise self._cut_short
        found: list[Candidate] = []
        for name, variant in service_variants(service, hardware.name, self.log):
            try:
                with interruptible(self._out_of_time):
                    candidates, sources = candidates_over_ways(
                        self._fleet, variant, hardware, self.log, self.calibrator
                    )
            except WorkInterruptedError as error:
                raise self._cut_short from error
            except UnsupportedArchitecture as error:
                issue = service_issue(self._fleet, service.name, "model", str(error))
                raise InputError([issue]) from error
            found += [
                each.running(replace(each.configuration, variant=name))
                for each in candidates
                if each.configuration is not None
            ]
            self.tables.update(dict.fromkeys(sources))
        self._done += 1
        return found

    @property
    def _cut_short(self) -> OutOfTimeError:
        pairs = f"{self._done} of {counted(self._asked, 'pair')} of a service and hardware"
        return OutOfTimeError(f"{pairs} evaluated and kept")


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


def _maturity_warnings(hardware: Hardware, framework: str, weights: str) -> list[str]:
    """Warn of parts whose launches and gaps are scaled by a factor, with the source of the factor."""
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
