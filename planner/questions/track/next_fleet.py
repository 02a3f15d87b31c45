"""Write the fleet file of the next plan from the current state and measurements, keeping comments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fleetplan.fleet.document import Document, KeyPath, YamlText
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet, Offer
from fleetplan.fleet.inventory.periods import Calendar
from fleetplan.planner.plan import Plan, Purchase
from fleetplan.planner.questions.track.measured_demand import (
    DemandScale,
    Shift,
    demand_from_now,
    growths,
    is_off,
    rounded,
    times,
)
from fleetplan.planner.questions.track.moved_files import moved_files
from fleetplan.planner.questions.track.variances import TrackReport

_ENDS: Final = {"max_hosts": 0, "max_accelerators": 0, "maintenance_hosts": {}}
"""Values of period tables without remaining periods; all other tables keep their last value."""


def next_fleet(
    document: Document, text: str, fleet: Fleet, plan: Plan, report: TrackReport, folder: Path
) -> str:
    """Return a fleet file that begins after the last measured period.

    The horizon is the rest of the plan's horizon, or the same number of further periods if nothing is left.
    Demand is the file's demand times the ratio of measured to planned demand, with growth from there.
    Measured rates go into `rate_ratio`. Pools include purchases, running rental terms and retirements up to
    that period. File references are relative to the new folder.

    Parameters
    ----------
    document : Document
        Fleet file with its imports, scenarios and assignments.
    text : str
        Text of the fleet file. With imports, scenarios or assignments it is not used, and comments are lost.
    fleet : Fleet
        Resolved fleet.
    plan : Plan
        Plan in force.
    report : TrackReport
        Measurements compared with the plan.
    folder : Path
        Folder of the new file.

    Raises
    ------
    InputError
        The periods have no dates.
    """
    shift = _shift(plan.periods, report.periods[-1], fleet.calendar)
    plain = document.root.plain()
    if not isinstance(plain, Mapping):
        raise TypeError("a fleet file is a mapping")
    gone = _gone_pools(fleet, shift)
    if gone:
        kept = [each for each in plain["pools"] if each["name"] not in gone]
        links = _links_left(plain, fleet, plan, shift, gone)
        plain = {**plain, "pools": kept, **links}
        if (fewer := YamlText(text)).has(("pools",)):
            fewer.keep_items(("pools",), kept)
            for key, left in links.items():
                fewer.put((key,), left)
            text = fewer.changed()
    edited = YamlText(text)
    if edited.has(("imports",)) or plan.provenance.scenarios or plan.provenance.assignments:
        edited = YamlText(yaml_text(dict(plain), allow_unicode=True))
    edited.put(("horizon", "periods"), list(shift.after), [f"after {report.periods[-1]}"])
    for key_path, name in moved_files(document, folder):
        edited.put(key_path, name)
    for key_path, value in _tables(plain, (), shift):
        edited.put(key_path, value)
    _put_services(edited, plain, [region.name for region in fleet.regions], shift, report)
    _put_prices(edited, plain, report)
    _put_pools(edited, fleet, plan, shift, gone)
    return edited.changed()


def _gone_pools(fleet: Fleet, shift: Shift) -> list[str]:
    """Return the pools whose life or lease ends before the next horizon; the fleet reader rejects them."""
    first = shift.calendar.index(shift.after[0])
    gone = []
    for pool in fleet.pools:
        ends = (
            None if pool.owned is None else pool.owned.end_of_life,
            None if pool.rented is None else pool.rented.lease_end,
        )
        indices = [shift.calendar.index(end) for end in ends if end is not None]
        if first is not None and any(index is not None and index <= first for index in indices):
            gone.append(pool.name)
    return gone


def _links_left(
    plain: Mapping[str, Any], fleet: Fleet, plan: Plan, shift: Shift, gone: Sequence[str]
) -> dict[str, object]:
    """Return `kv_links` without those of ended pools, if any; a rental may have taken over the name."""
    taken_over = {str(item["name"]) for item in _new_pools(fleet, plan, shift, gone)}
    links = plain.get("kv_links") or []
    left = [
        link for link in links if not (set(gone) - taken_over) & {str(link["prefill"]), str(link["decode"])}
    ]
    return {} if len(left) == len(links) else {"kv_links": left}


def _shift(periods: Sequence[str], last: str, calendar: Calendar) -> Shift:
    first, end = calendar.index(periods[0]), calendar.index(last)
    if first is None or end is None:
        message = f"the periods of the plan have no dates: {', '.join(periods)}"
        raise InputError(
            [Issue("periods", 0, 0, "", message, "name quarters or months, such as 2027Q1 or 2027-01")]
        )
    left = tuple(
        period for period in periods if (index := calendar.index(period)) is not None and index > end
    )
    after = left or tuple(calendar.name(end + 1 + k) for k in range(len(periods)))
    return Shift(tuple(periods), after, end + 1 - first, calendar)


def _tables(node: object, above: KeyPath, shift: Shift) -> list[tuple[KeyPath, object]]:
    """Return every period table outside the demand, with the periods of the next horizon."""
    if isinstance(node, Mapping):
        if node and all(key in shift.before for key in node):
            return [(above, _table(node, str(above[-1]), shift))]
        found = []
        for key, value in node.items():
            if key not in ("demand", "requests_per_day", "imports") and (*above, key) != (
                "horizon",
                "periods",
            ):
                found += _tables(value, (*above, key), shift)
        return found
    if isinstance(node, list):
        found = []
        for position, item in enumerate(node):
            found += _tables(item, (*above, position), shift)
        return found
    return []


def _table(node: Mapping[str, object], key: str, shift: Shift) -> object:
    latest = next(node[period] for period in reversed(shift.before) if period in node)
    if not any(period in shift.before for period in shift.after):
        return _ENDS.get(key, latest)
    kept = {period: node[period] for period in shift.after if period in node}
    return kept or _ENDS.get(key, latest)


def _put_services(
    edited: YamlText, plain: Mapping[str, object], regions: Sequence[str], shift: Shift, report: TrackReport
) -> None:
    services = plain.get("services")
    for service in services if isinstance(services, list) else []:
        name = str(service["name"])
        demand = report.demand_ratio.get(name, {})
        overall = _overall(report, name)
        for key_path in (("demand",), ("offline", "requests_per_day")):
            node: object = service
            for key in key_path:
                node = node.get(key) if isinstance(node, Mapping) else None
            if node is None:
                continue
            scaled = demand_from_now(
                node,
                DemandScale(shift, regions, demand, overall, growths(service.get("growth"), shift.calendar)),
                None,
                None,
            )
            if scaled != node:
                said = [f"actual over planned: {overall:.3f}"] if is_off(overall) else []
                edited.put(("services", name, *key_path), scaled, said)
        follows = service.get("follows")
        leaders = follows if isinstance(follows, list) else [] if follows is None else [follows]
        ratio = overall / _overall_of_leaders(report, leaders) if leaders else 1.0
        if name in report.demand_ratio and is_off(ratio):
            scaled = [{**each, "ratio": times(each["ratio"], ratio)} for each in leaders]
            if isinstance(follows, list):
                edited.put(("services", name, "follows"), scaled)
            else:
                edited.put(("services", name, "follows", "ratio"), scaled[0]["ratio"])
        rates = {kind: ratio for kind, ratio in report.rate_ratio.get(name, {}).items() if is_off(ratio)}
        if rates:
            before = service.get("rate_ratio", 1.0)
            merged = dict(before) if isinstance(before, Mapping) else {}
            for kind, ratio in rates.items():
                old = before.get(kind, 1.0) if isinstance(before, Mapping) else before
                merged[kind] = rounded(old * ratio)
            edited.put(("services", name, "rate_ratio"), merged, ["measured"])


def _overall_of_leaders(report: TrackReport, leaders: Sequence[Mapping[str, Any]]) -> float:
    """Return the actual over planned demand that other services induce in one that follows them.

    Ratios by class count with their mean.
    """
    planned, actual = 0.0, 0.0
    for each in leaders:
        ratio, name = each["ratio"], str(each["service"])
        weight = sum(ratio.values()) / len(ratio) if isinstance(ratio, Mapping) else ratio
        brought = weight * sum(row.planned for row in report.demand if row.service == name)
        planned += brought
        actual += brought * _overall(report, name)
    return actual / planned if planned else 1.0


def _overall(report: TrackReport, service: str) -> float:
    rows = [row for row in report.demand if row.service == service and row.planned]
    if not rows:
        return 1.0
    last = max(row.period for row in rows)
    latest = [row for row in rows if row.period == last]
    return sum(row.actual for row in latest) / sum(row.planned for row in latest)


def _put_prices(edited: YamlText, plain: Mapping[str, object], report: TrackReport) -> None:
    pools = plain.get("pools")
    for pool in pools if isinstance(pools, list) else []:
        ratio = report.price_ratio.get(str(pool["name"]), 1.0)
        rented = pool.get("rented")
        price = rented.get("usd_per_accelerator_hour") if isinstance(rented, Mapping) else None
        if isinstance(price, int | float) and is_off(ratio):
            key_path = ("pools", str(pool["name"]), "rented", "usd_per_accelerator_hour")
            edited.put(key_path, rounded(price * ratio), ["as paid"])


def _put_pools(edited: YamlText, fleet: Fleet, plan: Plan, shift: Shift, gone: Collection[str]) -> None:
    """Update the pools with purchases, running rental terms and retirements before the next horizon."""
    over = set(plan.periods) - set(shift.after)
    fewer: dict[str, int] = defaultdict(int)
    for retired in plan.retirements:
        if retired.period in over and retired.pool not in gone:
            fewer[retired.pool] += retired.hosts
    for pool in fleet.pools:
        if fewer[pool.name]:
            counted_in = "accelerators" if edited.has(("pools", pool.name, "accelerators")) else "hosts"
            left = pool.hosts - fewer[pool.name]
            edited.put(("pools", pool.name, counted_in), left, ["without retired ones"])
    items = _new_pools(fleet, plan, shift, gone)
    if items:
        edited.append(("pools",), items)


def _new_pools(fleet: Fleet, plan: Plan, shift: Shift, gone: Collection[str]) -> list[dict[str, object]]:
    """Return the pools created by the plan's purchases, with unique names."""
    over = set(plan.periods) - set(shift.after)
    taken = {pool.name for pool in fleet.pools if pool.name not in gone}
    offers = {offer.name: offer for offer in fleet.offers}
    items = []
    for purchase in plan.purchases:
        item = _pool_of(purchase, offers[purchase.offer], plan, shift) if purchase.period in over else None
        if item is not None:
            if item["name"] in taken:
                item["name"] = f"{purchase.pool}/{purchase.offer}-{purchase.period}"
            taken.add(str(item["name"]))
            items.append(item)
    return items


def _pool_of(purchase: Purchase, offer: Offer, plan: Plan, shift: Shift) -> dict[str, object] | None:
    """Return the pool created by a purchase, or None for an ended rental."""
    calendar = shift.calendar
    ordered, first = calendar.index(purchase.period), calendar.index(shift.after[0])
    if ordered is None or first is None:
        return None
    pool: dict[str, object] = {
        "name": purchase.pool,
        "region": purchase.region,
        "hardware": purchase.hardware,
    }
    by_host = purchase.unit == "host"
    if offer.capex_usd_per_host is not None:
        start = ordered + offer.lead_time_periods
        owned: dict[str, object] = {
            "capex_usd_per_host": offer.capex_usd_per_host,
            "in_service": calendar.name(min(start, first)),
            "life_quarters": offer.life_periods // calendar.per_quarter,
        }
        if offer.maintenance_ratio_per_year:
            owned["maintenance_ratio_per_year"] = offer.maintenance_ratio_per_year
        if offer.value_by_age:
            owned["residual_ratio"] = {
                str(age // calendar.per_quarter): value for age, value in offer.value_by_age
            }
        elif offer.residual_ratio:
            owned["residual_ratio"] = offer.residual_ratio
        pool |= {"hosts": purchase.units, "owned": owned}
        # Ordered but not delivered: out of service until delivery, with write-off from the first period.
        away = [period for k, period in enumerate(shift.after) if first + k < start]
        if away:
            pool["maintenance_hosts"] = dict.fromkeys(away, purchase.units)
    else:
        end = ordered + offer.term_periods
        if end <= first or offer.spot_max_share is not None or offer.rent_usd_per_accelerator_hour is None:
            return None
        price = offer.rent_usd_per_accelerator_hour[plan.periods.index(purchase.period)]
        pool["hosts" if by_host else "accelerators"] = purchase.units
        pool["rented"] = {
            "usd_per_accelerator_hour": price,
            "energy_included": offer.energy_included,
            "lease_end": calendar.name(end),
        }
    return pool
