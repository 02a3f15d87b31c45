"""Landscape question: a service of a fleet, or a model and hardware from the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fleetplan.fleet.catalog import accelerators, price_book, price_book_columns
from fleetplan.fleet.catalog.hardware_names import UnknownHardwareError, catalogue_hardware
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet, Hardware, Precision, Service
from fleetplan.fleet.inventory.power import all_in_power_w
from fleetplan.fleet.units import W_PER_KW
from fleetplan.perfmodel.architecture import UnsupportedArchitecture
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.landscape import LatencyTarget, Option, RequestShape, SearchSpace, SweepSpace
from fleetplan.perfmodel.optables import FRAMEWORKS
from fleetplan.perfmodel.serving import default_scheduling
from fleetplan.perfmodel.steps import KV_PRECISIONS, WEIGHT_PRECISIONS, Software
from fleetplan.planner.candidates import (
    Calibrator,
    RejectionLog,
    service_evaluator,
    service_scheduling,
    service_space,
    service_variants,
    supplied_hardware,
)
from fleetplan.planner.landscape.prices import cheapest_usd_per_accelerator_hour

COMMAND_LINE: Final = "command line"


@dataclass(frozen=True, slots=True)
class Capacity:
    """Supply of a fleet that turns a configuration's rate into served traffic.

    Attributes
    ----------
    peak_requests_per_s : dict[str, float]
        By request class, in the busiest region and period. [1/s]
    headroom : float
        Planned capacity above demand, as a share of it.
    reserve_hosts : int
        Hosts that a pool keeps free.
    reserve_percent : float
        Hosts kept free, in per cent of those in use. [%]
    accelerators_per_host : dict[str, int]
        Accelerators per host by hardware.
    """

    peak_requests_per_s: dict[str, float]
    headroom: float
    reserve_hosts: int
    accelerators_per_host: dict[str, int]
    reserve_percent: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """Search space with display names.

    Attributes
    ----------
    title : str
        The question in one line.
    space : SweepSpace
        Space to sweep.
    request_names : tuple[str, ...]
        Names of the requests.
    price_notes : tuple[str, ...]
        Sources of the prices, one per hardware.
    capacity : Capacity or None
        Supply of a fleet's service; None without a fleet.
    """

    title: str
    space: SweepSpace
    request_names: tuple[str, ...]
    price_notes: tuple[str, ...]
    capacity: Capacity | None


@dataclass(frozen=True, slots=True)
class LandscapeOptions:
    """Question from the command line.

    Attributes
    ----------
    model : str
        HF id, alias or path of a config.
    hardware : tuple[str, ...]
        Names in the catalogue.
    request : RequestShape
        Lengths.
    target : LatencyTarget
        Limits.
    weights, kv : tuple[str, ...]
        Precisions to try, in all combinations.
    framework : str
        trtllm, sglang or vllm.
    prices : str
        Column of the price book.
    """

    model: str
    hardware: tuple[str, ...]
    request: RequestShape
    target: LatencyTarget
    weights: tuple[str, ...]
    kv: tuple[str, ...]
    framework: str
    prices: str


def bad_option(option: str, message: str, hint: str = "") -> InputError:
    """Return the error of a command-line option."""
    return InputError([Issue(COMMAND_LINE, 0, 0, option, message, hint)])


def question_of_options(asked: LandscapeOptions, search: SearchSpace) -> Question:
    """Return the question of a command line.

    Raises
    ------
    InputError
        If a model, hardware, precision, framework or price column is unknown.
    """
    asked = replace(asked, hardware=tuple(dict.fromkeys(map(_hardware, asked.hardware))))
    _check(asked)
    notes, options = [], []
    for name in asked.hardware:
        part = accelerators()[name]
        price = price_book().get(name, {}).get(asked.prices)
        usd = None if price is None else price.usd_per_accelerator_hour
        notes.append(
            f"{name}: no price in the column {asked.prices}"
            if price is None
            else f"{name}: {usd:g} USD/h ({asked.prices}, {price.as_of}, {price.source})"
        )
        power_w = all_in_power_w(part)
        kw = None if power_w is None else power_w / W_PER_KW
        for weights in asked.weights:
            for kv in asked.kv:
                evaluator = _evaluator(asked, name, Precision(weights, kv))
                scheduling = default_scheduling(asked.framework, part, overlaps_host=evaluator.overlaps_host)
                stages = search.pipeline_stages
                options.append(Option(name, evaluator, usd, kw, asked.framework, scheduling, stages))
    space = SweepSpace(tuple(options), (asked.request,), asked.target, search)
    lengths = f"{asked.request.input_tokens} in, {asked.request.output_tokens} out"
    return Question(
        f"{asked.model} on {', '.join(asked.hardware)}: {lengths}", space, ("all",), tuple(notes), None
    )


def _hardware(name: str) -> str:
    try:
        return catalogue_hardware(name)
    except UnknownHardwareError as error:
        raise bad_option("--hardware", f"there is no {name!r} in the catalogue", error.hint) from error


def _check(asked: LandscapeOptions) -> None:
    for option, given, allowed in (
        ("--weights", asked.weights, WEIGHT_PRECISIONS),
        ("--kv", asked.kv, KV_PRECISIONS),
        ("--framework", (asked.framework,), FRAMEWORKS),
        ("--prices", (asked.prices,), tuple(price_book_columns())),
    ):
        for value in given:
            if value not in allowed:
                raise bad_option(option, f"there is no {value!r}", names_hint(value, allowed))


def _evaluator(asked: LandscapeOptions, hardware: str, precision: Precision) -> Evaluator:
    try:
        return build_evaluator(
            asked.model,
            accelerators()[hardware],
            asked.framework,
            precision,
            Path(),
            software=Software(prefix_cache=asked.request.prefix_tokens > 0),
        )
    except UnsupportedArchitecture as error:
        raise bad_option("--model", str(error)) from error


def question_of_service(fleet: Fleet, name: str | None, search: SearchSpace) -> Question:
    """Return the question of one service of a fleet; without a name, of its only service with a model.

    The service's variants appear side by side, like hardware.

    Raises
    ------
    InputError
        If there is no such service, it has an engine table, or hardware lacks figures.
    """
    service = _service(fleet, name)
    space = service_space(service, search)
    options: list[Option] = []
    notes: list[str] = []
    calibrator = Calibrator(fleet)
    for hardware in (fleet.hardware[each] for each in supplied_hardware(fleet)):
        if service.allowed_hardware is not None and hardware.name not in service.allowed_hardware:
            continue
        if hardware.accelerator is None:
            notes.append(f"{hardware.name}: left out, no figures")
            continue
        usd, note = cheapest_usd_per_accelerator_hour(fleet, hardware)
        notes.append(f"{hardware.name}: {note}")
        for variant, served in service_variants(service, hardware.name, RejectionLog()):
            _refuse_other_lengths(fleet, service, served)
            power_w = hardware.installed_w_per_accelerator
            kw = None if power_w is None else power_w / W_PER_KW
            evaluator = calibrator.apply(_service_evaluator(fleet, served, hardware), served.framework)
            options.append(
                Option(
                    f"{variant}/{hardware.name}" if variant else hardware.name,
                    evaluator,
                    usd,
                    kw,
                    service.layout_framework,
                    service_scheduling(served, evaluator),
                    space.pipeline_stages,
                )
            )
    if not options:
        raise _wrong(fleet, service, "no hardware with known figures may serve it")
    swept = SweepSpace(
        tuple(options),
        tuple(_request(service, position) for position in range(len(service.classes))),
        LatencyTarget(service.inner_ttft_ms, service.tpot_ms),
        space,
    )
    return Question(
        f"{service.name} of {fleet.name}: {service.model}",
        swept,
        tuple(each.name for each in service.classes),
        (*notes, *calibrator.warnings()),
        _capacity(fleet, service),
    )


def _service_evaluator(fleet: Fleet, service: Service, hardware: Hardware) -> Evaluator:
    try:
        return Calibrator(fleet).apply(service_evaluator(fleet, service, hardware), service.framework)
    except UnsupportedArchitecture as error:
        raise _wrong(fleet, service, str(error)) from error


def _refuse_other_lengths(fleet: Fleet, service: Service, variant: Service) -> None:
    if variant.classes != service.classes:
        message = "its variants compress prompts, and a landscape compares requests of one length"
        raise _wrong(fleet, service, message)


def _wrong(fleet: Fleet, service: Service, message: str) -> InputError:
    return InputError([Issue(str(fleet.path), 0, 0, f"services.{service.name}", message)])


def _service(fleet: Fleet, name: str | None) -> Service:
    modelled = {service.name: service for service in fleet.services if service.model is not None}
    if name is None:
        if len(modelled) == 1:
            return next(iter(modelled.values()))
        raise bad_option(
            "--service",
            f"{fleet.name} has {counted(len(modelled), 'service')} with a model",
            ", ".join(modelled),
        )
    if name not in modelled:
        engines = any(service.name == name for service in fleet.services)
        what = "brings its own rates: there is nothing to search" if engines else "is not in the fleet"
        raise bad_option("--service", f"{name!r} {what}", names_hint(name, tuple(modelled)))
    return modelled[name]


def _request(service: Service, position: int) -> RequestShape:
    request = service.classes[position]
    if request.input_tokens is None or request.output_tokens is None:
        raise ValueError(f"class {request.name!r} of {service.name!r} has no lengths")
    return RequestShape(request.input_tokens, request.output_tokens, request.context_tokens)


def _capacity(fleet: Fleet, service: Service) -> Capacity:
    peaks: dict[str, float] = {}
    for (_, _, name), rate in service.demand.peak.items():
        peaks[name] = max(peaks.get(name, 0.0), rate)
    return Capacity(
        peaks,
        service.headroom,
        fleet.policy.reserve_hosts_per_pool,
        {name: hardware.accelerators_per_host for name, hardware in fleet.hardware.items()},
        fleet.policy.reserve_percent_per_pool,
    )
