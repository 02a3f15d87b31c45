"""Resolve services that follow others: their demand, and shared latency budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import DemandCase, DemandRates, FollowedServices, Service
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.fleet import ServiceSpec
from fleetplan.fleet.schema.service_parts import FollowsSpec


def in_order_of_following(
    context: Context,
    specs: Sequence[tuple[int, ServiceSpec]],
    resolve: Callable[[KeyPath, ServiceSpec, tuple[Service, ...]], Service | None],
) -> list[Service]:
    """Return the valid services in the order of the file, each resolved after the services that it follows.

    Parameters
    ----------
    context : Context
        Receives issues.
    specs : Sequence[tuple[int, ServiceSpec]]
        Services with their positions in the file.
    resolve : callable
        Builds a service from its block and the services that it follows.
    """
    block = context.document.root.child("services")
    names = [] if block is None else [item.name for item in block.items if item.name]
    waiting = [(i, spec) for i, spec in specs if _leaders_exist(context, i, spec, names)]
    # Followers of a broken service are checked once it is corrected.
    whole = [spec.name for _, spec in waiting]
    found: dict[str, Service | None] = {name: None for name in names if name not in whole}
    while waiting:
        ready = [(i, spec) for i, spec in waiting if all(each.service in found for each in spec.leaders)]
        if not ready:
            _note_circle(context, waiting)
            break
        for i, spec in ready:
            leaders = [found[each.service] for each in spec.leaders]
            whole_ones = tuple(leader for leader in leaders if leader is not None)
            broken = len(whole_ones) < len(leaders)
            found[spec.name] = None if broken else resolve(("services", i), spec, whole_ones)
        waiting = [item for item in waiting if item not in ready]
    valid = {name: service for name, service in found.items() if service is not None}
    shared = shared_budgets(context, specs, valid)
    return [shared[spec.name] for _, spec in specs if spec.name in shared]


def followed_paths(key_path: KeyPath, spec: ServiceSpec) -> list[tuple[KeyPath, FollowsSpec]]:
    """Return the services that a service follows, with their paths in the file."""
    here: KeyPath = (*key_path, "follows")
    if not isinstance(spec.follows, list):
        return [(here, each) for each in spec.leaders]
    return [((*here, n), each) for n, each in enumerate(spec.leaders)]


def _leaders_exist(context: Context, position: int, spec: ServiceSpec, names: Sequence[str]) -> bool:
    """Note unknown and duplicate services, and limits that several services cannot share."""
    known, seen = True, set[str]()
    for here, each in followed_paths(("services", position), spec):
        known &= context.check_name((*here, "service"), "service", each.service, names)
        if each.service in seen:
            context.error((*here, "service"), f"the service {each.service!r} is given twice")
        seen.add(each.service)
        if each.ttft_share is not None and len(spec.leaders) > 1:
            message = "cannot be combined with several services: each has its own limit"
            context.error((*here, "ttft_share"), message, "give this service slo.ttft_ms")
            known = False
    return known


def _note_circle(context: Context, waiting: Sequence[tuple[int, ServiceSpec]]) -> None:
    names = ", ".join(spec.name for _, spec in waiting)
    here = (*followed_paths(("services", waiting[0][0]), waiting[0][1])[0][0], "service")
    context.error(here, f"follows in a circle: {names}", "one of them needs a demand")


def followed_demand(
    context: Context,
    key_path: KeyPath,
    spec: FollowsSpec,
    followed: tuple[Service, DemandCase],
    shares: Mapping[str, float] | None,
    class_names: Sequence[str],
) -> DemandRates | None:
    """Return the demand that requests of another service cause, by (region, period, class). [1/s].

    Parameters
    ----------
    context : Context
        Receives issues.
    key_path : KeyPath
        Path of the followed service.
    spec : FollowsSpec
        Block with the ratio.
    followed : tuple[Service, DemandCase]
        The followed service, and the case.
    shares : Mapping[str, float] or None
        Shares of the classes; required for several classes.
    class_names : Sequence[str]
        Classes of the following service.
    """
    leader, case = followed
    names = [request_class.name for request_class in leader.classes]
    if isinstance(spec.ratio, Mapping):
        for name in spec.ratio:
            context.check_name((*key_path, "ratio", name), "class", name, names, at_key=True)
        ratios = {name: spec.ratio.get(name, 0.0) for name in names}
    else:
        ratios = dict.fromkeys(names, float(spec.ratio))
    if shares is None and len(class_names) > 1:
        message = f"the split of these requests is missing: it needs shares of {', '.join(class_names)}"
        context.error(key_path, message, "give every class of the workload a share")
        return None
    parts = {class_names[0]: 1.0} if shares is None else shares
    demand: dict[tuple[str, str, str], float] = {}
    for (region, period, name), requests_per_s in leader.demand.of(case).items():
        for own, share in parts.items():
            key = (region, period, own)
            demand[key] = demand.get(key, 0.0) + requests_per_s * ratios[name] * share
    return demand


def resolved_follows(spec: ServiceSpec) -> FollowedServices | None:
    """Return the services that a service follows, in the form of the planner."""
    if not spec.leaders:
        return None
    return FollowedServices(tuple(each.service for each in spec.leaders), spec.leaders[0].ttft_share)


def shared_budgets(
    context: Context, specs: Sequence[tuple[int, ServiceSpec]], services: Mapping[str, Service]
) -> dict[str, Service]:
    """Return the services with their shares of common TTFT limits.

    Parameters
    ----------
    context : Context
        Receives issues.
    specs : Sequence[tuple[int, ServiceSpec]]
        Services with their positions in the file.
    services : Mapping[str, Service]
        Valid services by name.
    """
    shared = dict(services)
    sharing: dict[str, list[Service]] = {}
    for i, spec in specs:
        service = services.get(spec.name)
        if service is None or service.follows is None or service.follows.ttft_share is None:
            continue
        leader = services[service.follows.services[0]]
        if _may_share(context, ("services", i), service, leader):
            sharing.setdefault(leader.name, []).append(service)
    for name, followers in sharing.items():
        _share(context, specs, shared, services[name], followers)
    return shared


def _may_share(context: Context, key_path: KeyPath, service: Service, leader: Service) -> bool:
    here = (*key_path, "follows", "ttft_share")
    if leader.follows is not None and leader.follows.ttft_share is not None:
        hint = "let both share that of the first service"
        context.error(here, f"{leader.name} shares the limit of {leader.follows.names} itself", hint)
        return False
    if leader.traffic is not None and leader.traffic.ttft:
        message = f"{leader.name} limits TTFT under load, but only a limit on the mean can be shared"
        context.error(here, message, "give it slo.ttft_ms, without traffic")
        return False
    if leader.ttft_ms is None:
        context.error(here, f"{leader.name} has no slo.ttft_ms to share")
        return False
    if service.ttft_ms is not None:
        hint = f"leave out slo.ttft_ms here: it is a part of that of {leader.name}"
        context.error(here, "cannot be combined with slo.ttft_ms of this service", hint)
        return False
    return True


def _share(
    context: Context,
    specs: Sequence[tuple[int, ServiceSpec]],
    shared: dict[str, Service],
    leader: Service,
    followers: Sequence[Service],
) -> None:
    """Divide the TTFT limit of a service among the services that share it."""
    limit_ms = leader.ttft_ms or 0.0
    positions = {spec.name: i for i, spec in specs}
    left = 1.0
    for follower in followers:
        share = 0.0 if follower.follows is None else follower.follows.ttft_share or 0.0
        left -= share
        shared[follower.name] = replace(follower, ttft_ms=share * limit_ms)
        if follower.outside_ms.total_ms >= share * limit_ms:
            message = f"{follower.outside_ms.total_ms:g} ms outside leave nothing of {share * limit_ms:g} ms"
            context.error(("services", positions[follower.name], "follows", "ttft_share"), message)
    if left * limit_ms <= leader.outside_ms.total_ms:
        here: KeyPath = ("services", positions[followers[-1].name], "follows", "ttft_share")
        message = f"leaves {max(left, 0.0) * limit_ms:g} of {limit_ms:g} ms to {leader.name}"
        outside = f"which spends {leader.outside_ms.total_ms:g} ms outside inference"
        context.error(here, f"{message}, {outside}")
    shared[leader.name] = replace(leader, ttft_ms=left * limit_ms)
