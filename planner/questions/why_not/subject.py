"""Parse the text of `--why-not`: hardware, an offer, a runtime, a configuration or a region."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.catalog.hardware_names import hardware_called
from fleetplan.fleet.errors import InputError, Issue, nearest
from fleetplan.fleet.inventory import Fleet, MustUse, Service
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.landscape import configuration_problem
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.planner.candidates import build_candidates, service_space, supplied_hardware
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Candidate, ConfigurationKey

RUNTIME_PHASES: Final = {"disaggregated": ("prefill", "decode"), "aggregated": ("aggregated",)}
"""Phases of the replicas of each runtime."""


class SubjectKind(StrEnum):
    """Kind of the item."""

    HARDWARE = "hardware"
    OFFER = "offer"
    RUNTIME = "runtime"
    REGION = "region"
    CONFIGURATION = "configuration"


@dataclass(frozen=True, slots=True)
class Subject:
    """The item of a question.

    Attributes
    ----------
    kind : SubjectKind
        Kind of the item.
    name : str
        Name of the item.
    must_use : MustUse
        Condition that forces the item into a plan.
    offers : frozenset[str]
        Offers that supply only the item; their prices decide whether it is used.
    configurations : frozenset[ConfigurationKey]
        For a configuration: keys that stay candidates even if dominated.
    supplied : bool
        Whether the fleet has the item or can get it.
    refused : tuple[tuple[str, str], ...]
        For a configuration that cannot run: services and reasons.
    """

    kind: SubjectKind
    name: str
    must_use: MustUse
    offers: frozenset[str] = frozenset()
    configurations: frozenset[ConfigurationKey] = frozenset()
    supplied: bool = True
    refused: tuple[tuple[str, str], ...] = ()

    def matches(self, candidate: Candidate) -> bool:
        """Return whether a candidate is the item, or could run on it."""
        wanted = self.must_use
        return (
            wanted.hardware in (None, candidate.hardware)
            and wanted.config in (None, candidate.config)
            and wanted.service in (None, candidate.service)
            and (wanted.phases is None or candidate.phase.value in wanted.phases)
        )

    def used_in(self, plan: Plan) -> tuple[Placement, ...]:
        """Return the placements of a plan that contain the item."""
        wanted = self.must_use
        if self.kind is SubjectKind.OFFER:
            pools = {purchase.pool for purchase in plan.purchases if purchase.offer == self.name}
            return tuple(row for row in plan.placements if row.pool in pools)
        return tuple(
            row
            for row in plan.placements
            if wanted.hardware in (None, row.hardware)
            and wanted.config in (None, row.config)
            and wanted.service in (None, row.service)
            and wanted.region in (None, row.region)
            and (wanted.phases is None or row.phase in wanted.phases)
        )


def read_subject(text: str, fleet: Fleet, share: float) -> Subject:
    """Return the item that a text names in a fleet.

    Parameters
    ----------
    text : str
        A name, or `kind:name` for a name of two kinds. A configuration is its label, `service/label`, or
        `service/hardware/label`.
    fleet : Fleet
        Fleet of the plan.
    share : float
        Minimum share of a class that the item must serve to be in a plan, 0 to 1.

    Raises
    ------
    InputError
        The text names nothing, or several items.
    """
    kind, colon, name = text.partition(":")
    wanted = [SubjectKind(kind)] if colon and kind in set(SubjectKind) else list(SubjectKind)
    name = name if len(wanted) == 1 else text
    found = [subject for each in wanted for subject in _READERS[each](name, fleet)]
    if len(found) > 1:
        ways = " or ".join(f"{subject.kind}:{name}" for subject in found)
        raise _mistake(text, f"{name!r} names {len(found)} different things", f"write {ways}")
    if not found:
        names = [*supplied_hardware(fleet), *accelerators(), *(offer.name for offer in fleet.offers)]
        names += [*RUNTIME_PHASES, *(region.name for region in fleet.regions)]
        names += [candidate.config for candidate in _configurations(fleet)]
        meant = nearest(name, names)
        hint = (
            "write a configuration as plans print it, such as 'TP2 b64', with the batch that serves most "
            "within the limits"
        )
        hint = hint if meant is None else f"did you mean {meant!r}? If not, {hint}"
        raise _mistake(text, "is not a hardware kind, offer, runtime, region or configuration", hint)
    return replace(found[0], must_use=replace(found[0].must_use, share=share))


def _hardware(name: str, fleet: Fleet) -> Iterator[Subject]:
    name = hardware_called(name, supplied_hardware(fleet))
    supplied = name in supplied_hardware(fleet)
    if supplied or name in accelerators():
        offers = frozenset(offer.name for offer in fleet.offers if offer.hardware == name)
        yield Subject(SubjectKind.HARDWARE, name, MustUse(name, hardware=name), offers, supplied=supplied)


def _offer(name: str, fleet: Fleet) -> Iterator[Subject]:
    if name in {offer.name for offer in fleet.offers}:
        yield Subject(SubjectKind.OFFER, name, MustUse(name, offer=name), frozenset([name]))


def _runtime(name: str, _: Fleet) -> Iterator[Subject]:
    if name in RUNTIME_PHASES:
        yield Subject(SubjectKind.RUNTIME, name, MustUse(name, phases=RUNTIME_PHASES[name]))


def _region(name: str, fleet: Fleet) -> Iterator[Subject]:
    if name in {region.name for region in fleet.regions}:
        yield Subject(SubjectKind.REGION, name, MustUse(name, region=name))


def _configuration(name: str, fleet: Fleet) -> Iterator[Subject]:
    *places, label = name.split("/")
    services = {service.name for service in fleet.services}
    service = places[0] if places and places[0] in services else None
    hardware = places[-1] if places and places[-1] in fleet.hardware else None
    if len(places) != (service is not None) + (hardware is not None):
        # A label may contain a slash: the name of a variant comes first.
        service, hardware, label = None, None, name
    wanted = MustUse(name, service=service, hardware=hardware, config=label)
    subject = Subject(SubjectKind.CONFIGURATION, name, wanted)
    asked = [each for each in fleet.services if service in (None, each.name)]
    every = _configurations(replace(fleet, services=tuple(asked)))
    keys = frozenset(candidate.key for candidate in every if subject.matches(candidate))
    if keys:
        yield replace(subject, configurations=keys)
    elif refused := tuple(dict.fromkeys(_refusals(label, asked, hardware, fleet))):
        yield replace(subject, refused=refused)


def _refusals(
    label: str, services: Sequence[Service], hardware: str | None, fleet: Fleet
) -> Iterator[tuple[str, str]]:
    """Yield why a configuration cannot run, by service; nothing if it can, or if the label is invalid."""
    try:
        layout = Configuration.parse(label).layout
    except ValueError:
        return
    for service in services:
        if service.model is None:
            continue
        model = load_architecture(service.model, fleet.path.parent)
        stages = service_space(service).pipeline_stages
        for name in supplied_hardware(fleet):
            part = fleet.hardware[name].accelerator
            if part is None or hardware not in (None, name):
                continue
            for phase in (phase for runtime in service.runtimes for phase in RUNTIME_PHASES[runtime]):
                framework = service.layout_framework
                problem = configuration_problem(model, layout, part, phase, framework, stages)
                if problem:
                    yield service.name, problem


def _configurations(fleet: Fleet) -> tuple[Candidate, ...]:
    """Return every configuration within the limits, including dominated ones."""
    return build_candidates(fleet, lambda _: None, EVERYTHING).candidates


_READERS: Final[dict[SubjectKind, Callable[[str, Fleet], Iterator[Subject]]]] = {
    SubjectKind.HARDWARE: _hardware,
    SubjectKind.OFFER: _offer,
    SubjectKind.RUNTIME: _runtime,
    SubjectKind.REGION: _region,
    SubjectKind.CONFIGURATION: _configuration,
}


class _Everything(Collection[ConfigurationKey]):
    """Contains every configuration, so that none is left out as dominated."""

    def __contains__(self, _: object) -> bool:
        return True

    def __iter__(self) -> Iterator[ConfigurationKey]:
        return iter(())

    def __len__(self) -> int:
        return 0


EVERYTHING: Final = _Everything()
"""All configurations."""


def _mistake(text: str, message: str, hint: str) -> InputError:
    return InputError([Issue(f"--why-not {text}", 0, 0, "", message, hint)])
