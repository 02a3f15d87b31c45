"""Resolve networks: transfers of KV caches, and regions that serve other regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import Hardware, KvLink, Pool, Region, Service
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema import FleetSpec
from fleetplan.fleet.schema.fleet import PolicySpec, ServiceSpec


def resolve_kv_pairs(
    context: Context, spec: FleetSpec, hardware: Mapping[str, Hardware]
) -> frozenset[tuple[str, str]] | None:
    """Return the pairs of prefill and decode hardware between which a KV cache may travel; None is any.

    Hardware without a known vendor pairs with any other: its owner measured its rates.
    """
    rule = spec.policy.kv_pairs
    if rule == "any":
        return None
    if isinstance(rule, list):
        for i, pair in enumerate(rule):
            for key, name in (("prefill", pair.prefill), ("decode", pair.decode)):
                context.check_hardware(("policy", "kv_pairs", i, key), name)
        listed = {(pair.prefill, pair.decode) for pair in rule}
        return frozenset(listed | {(name, name) for name in hardware})
    vendors = {
        name: None if part.accelerator is None else part.accelerator.vendor for name, part in hardware.items()
    }
    if len(set(vendors.values())) <= 1:
        return None
    return frozenset(
        (one, other)
        for one, vendor in vendors.items()
        for other, second in vendors.items()
        if vendor == second or vendor is None or second is None
    )


def resolve_kv_links(context: Context, spec: FleetSpec, pools: Sequence[Pool]) -> tuple[KvLink, ...]:
    """Return the links with limited capacity; mistakes go to the context."""
    regions = {name: name for name in context.region_names} | {pool.name: pool.region for pool in pools}
    found = []
    for i, link in enumerate(spec.kv_links):
        here: KeyPath = ("kv_links", i)
        known = [
            context.check_name((*here, key), "region or pool", name, tuple(regions))
            for key, name in (("prefill", link.prefill), ("decode", link.decode))
        ]
        if not all(known):
            continue
        apart = regions[link.prefill] != regions[link.decode]
        if apart and spec.policy.kv_transfer != "cross-region":
            message = f"leads to another region, and policy.kv_transfer is {spec.policy.kv_transfer}"
            context.error(here, message, "policy: {kv_transfer: cross-region}")
        if not apart and link.added_ms:
            message = "is within a region: its time is part of the TTFT of prefill already"
            context.error((*here, "added_ms"), message, "leave it out")
        found.append(KvLink(link.prefill, link.decode, link.gb_per_s, link.added_ms))
    if spec.policy.kv_transfer == "cross-region" and not any(
        regions[link.prefill] != regions[link.decode] for link in found
    ):
        context.error(("policy", "kv_transfer"), "needs a link between two regions", "see kv_links")
    return tuple(found)


def resolve_round_trips(context: Context, spec: FleetSpec, regions: Sequence[Region]) -> tuple[Region, ...]:
    """Return the regions with round trips and network prices, each applied in both directions."""
    given = {} if spec.regions is None else spec.regions
    ways: dict[str, dict[str, float]] = {region.name: {} for region in regions}
    prices: dict[str, dict[str, float]] = {region.name: {} for region in regions}
    for name, block in given.items():
        for key, values, found in (
            ("round_trip_ms", block.round_trip_ms, ways),
            ("network_usd_per_gb", block.network_usd_per_gb, prices),
        ):
            for other, value in values.items():
                here: KeyPath = ("regions", name, key, other)
                if other == name:
                    context.error(here, "is the region itself", at_key=True)
                elif context.check_name(here, "region", other, context.region_names, at_key=True):
                    found[name][other] = value
                    back = getattr(given[other], key).get(name) if other in given else None
                    if back is not None and back != value:
                        context.error(here, f"{value:g}, and {back:g} the other way round", "give it once")
                    if other in found:
                        found[other][name] = value
    return tuple(
        replace(region, round_trip_ms=ways[region.name], network_usd_per_gb=prices[region.name])
        for region in regions
    )


def with_home_preference(
    context: Context,
    specs: Sequence[tuple[int, ServiceSpec]],
    policy: PolicySpec,
    services: Sequence[Service],
) -> tuple[Service, ...]:
    """Return the services with their largest extra cost for serving requests at home.

    Parameters
    ----------
    context : Context
        Receives warnings.
    specs : Sequence[tuple[int, ServiceSpec]]
        Services with their positions in the file.
    policy : PolicySpec
        Has the default.
    services : Sequence[Service]
        The valid services, with the regions that may serve them.
    """
    stated = {spec.name: (i, spec.home_percent) for i, spec in specs}
    found = []
    for service in services:
        i, own = stated[service.name]
        if own and not service.serve_from:
            context.warn(("services", i, "home_percent"), "has no effect: no other region serves it")
        percent = policy.home_percent if own is None else own
        found.append(replace(service, home_percent=percent if service.serve_from else 0.0))
    return tuple(found)


def with_serving_regions(
    context: Context,
    specs: Sequence[tuple[int, ServiceSpec]],
    regions: Sequence[Region],
    services: Sequence[Service],
) -> tuple[Service, ...]:
    """Return the services with the regions that may serve the demand of others.

    Parameters
    ----------
    context : Context
        Receives issues.
    specs : Sequence[tuple[int, ServiceSpec]]
        Services with their positions in the file.
    regions : Sequence[Region]
        Regions with their round trips.
    services : Sequence[Service]
        The valid services.
    """
    places = {region.name: region for region in regions}
    positions = {spec.name: (i, spec) for i, spec in specs}
    found = []
    for service in services:
        i, spec = positions[service.name]
        here: KeyPath = ("services", i)
        serving = _serving(context, (*here, "serve_from"), spec, places)
        _warn_of_long_ways(context, (*here, "serve_from"), service, serving, places)
        if spec.regions is not None:
            _check_regions(context, (*here, "regions"), spec.regions, service, serving)
        if spec.mb_per_request and not any(region.network_usd_per_gb for region in regions):
            context.warn((*here, "mb_per_request"), "has no effect: no region gives network_usd_per_gb")
        found.append(replace(service, serve_from=serving, mb_per_request=spec.mb_per_request))
    return tuple(found)


def _serving(
    context: Context, key_path: KeyPath, spec: ServiceSpec, places: Mapping[str, Region]
) -> dict[str, tuple[str, ...]]:
    """Return the other regions that may serve each region."""
    rule = spec.serve_from
    if rule is None:
        return {}
    everywhere = {name: tuple(region.round_trip_ms) for name, region in places.items()}
    if rule == "any":
        return {name: others for name, others in everywhere.items() if others}
    by_region = dict(rule) if isinstance(rule, Mapping) else dict.fromkeys(places, rule)
    found: dict[str, tuple[str, ...]] = {}
    for origin, names in by_region.items():
        listed = isinstance(rule, Mapping)
        here = (*key_path, origin) if listed else key_path
        if listed and not context.check_name(here, "region", origin, context.region_names, at_key=True):
            continue
        known = list(everywhere.get(origin, ())) if names == "any" else []
        for j, name in enumerate(() if names == "any" else names):
            if not context.check_name((*here, j), "region", name, context.region_names) or name == origin:
                continue
            if name in places and origin in places and name not in places[origin].round_trip_ms:
                message = f"the round trip from {origin} to {name} is unknown"
                context.error((*here, j), message, f"give regions.{origin}.round_trip_ms.{name}")
                continue
            known.append(name)
        if known:
            found[origin] = tuple(dict.fromkeys(known))
    return found


def _warn_of_long_ways(
    context: Context,
    key_path: KeyPath,
    service: Service,
    serving: Mapping[str, Sequence[str]],
    places: Mapping[str, Region],
) -> None:
    limit_ms = service.least_inner_ttft_ms
    for origin, names in serving.items():
        for name in names:
            # A region with a broken block has been reported, and has no round trips.
            way_ms = places[origin].round_trip_ms.get(name, 0.0) if origin in places else 0.0
            if way_ms >= limit_ms:
                text = f"{name} is too far from {origin}: {way_ms:g} of {limit_ms:g} ms"
                context.warn(key_path, text)


def _check_regions(
    context: Context,
    key_path: KeyPath,
    allowed: Sequence[str],
    service: Service,
    serving: Mapping[str, Sequence[str]],
) -> None:
    """Note regions with demand for which no allowed region may serve."""
    asked = dict.fromkeys(region for (region, _, _), rate in service.demand.peak.items() if rate > 0)
    missing = [
        region
        for region in asked
        if region not in allowed and not any(name in allowed for name in serving.get(region, ()))
    ]
    if missing:
        message = f"there is demand in {', '.join(missing)}, and no region that may serve it is named"
        context.error(key_path, message, "add the region, see serve_from, or take its demand out")
