"""The report's page against plan.json."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.oracles.shown.amounts import Money, figure_differs, percent_differs, unequal
from tests.oracles.shown.page import Element
from tests.oracles.shown.page_tables import cells, table_of

Row = dict[str, Any]

MOST_ROWS: Final = 600
"""Rows of a table of the page."""


def report_faults(plan: Row, page: Element, money: Money) -> Iterator[str]:
    """Yield what the page says otherwise than plan.json."""
    sections = {each.attributes["id"]: each for each in page.all("section")}
    yield from _head(plan, page, money)
    for name, read in SECTIONS.items():
        if name in sections:
            yield from (f"{name}: {why}" for why in read(plan, sections[name], money))


def _moment(row: Row) -> str:
    return " ".join(row[part] for part in ("period", "slice", "scenario") if row[part])


def _head(plan: Row, page: Element, money: Money) -> Iterator[str]:
    leads = [each.text for each in page.all("p", kind="lead")]
    found = re.search(r"^(\S+(?: [kMB])?|\w+ \S+(?: [kMB])?) total cost of ownership, ", leads[1])
    gap = re.search(r"Optimality gap (\S+): lower bound (.*?)(?: among .*)?, proven by", leads[1])
    assert found
    assert gap
    tiles = {each.first("dt").text: each.first("dd") for each in page.all("div") if each.first("dt")}  # type: ignore[union-attr]
    figures = {
        "TCO": ("money", plan["objective_usd"]),
        "optimality gap": ("percent", plan["gap"]),
        "idle capacity": ("money", sum(use["idle_usd"] for use in plan["pools"])),
    }
    row = {name: _own_text(tiles[name]) for name in tiles}
    row |= {"lead": found[1], "lead gap": gap[1], "lead bound": gap[2]}
    figures |= {
        "lead": ("money", plan["objective_usd"]),
        "lead gap": ("percent", plan["gap"]),
        "lead bound": ("money", plan["bound_usd"]),
    }
    optional = {
        "hosts that leave, book value less sale": (
            "money", sum(use["retirement_usd"] for use in plan["pools"])
        ),
        "per million tokens at peak traffic": ("money", plan["usd_per_million_tokens"], 3),
        "carbon of the energy": ("carbon", plan["carbon_kg"]),
    }  # fmt: skip
    for name, value in optional.items():
        if name not in row:
            continue
        if value[0] == "carbon":
            if figure_differs(row[name].removesuffix(" t CO₂"), plan["carbon_kg"] / 1000):
                yield f"tile {name}: {row[name]}, the plan has {plan['carbon_kg']} kg"
        else:
            figures[name] = value
    yield from cells("head", row, figures, money)
    if "accelerators bought and rented" in row:
        yield from _ordered(plan, row["accelerators bought and rented"])
    yield from _alarm(plan, page)


def _own_text(part: Element) -> str:
    return "".join(each for each in part.held if isinstance(each, str)).strip()


def _ordered(plan: Row, shown: str) -> Iterator[str]:
    """Orders that last, and the most that is rented by the period at once."""
    lasting, by_period = 0, Counter[str]()
    for row in plan["purchases"]:
        if row["assumed"]:
            continue
        if row["kind"] in ("rent", "spot"):
            by_period[row["period"]] += row["accelerators"]
        else:
            lasting += row["accelerators"]
    total = lasting + max(by_period.values(), default=0)
    if figure_differs(shown, total):
        yield f"accelerators bought and rented: {shown}, the orders have {total}"


def _alarm(plan: Row, page: Element) -> Iterator[str]:
    """Unmet demand, in the table by service and in the list; crumbs of rounding are not shown."""
    alarm = page.first("div", kind="alarm")
    if alarm is None:
        yield from (f"{row} is not shown" for row in plan["unmet"] if row["requests_per_s"] > 1e-3)
        return
    said = [each.text for each in alarm.all("li")]
    at: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in plan["unmet"]:
        at[row["service"]][_moment(row)] += row["requests_per_s"]
    listed = sum(float(text.rsplit(": ", 1)[1].split()[0].replace(",", "")) for text in said)
    total = sum(row["requests_per_s"] for row in plan["unmet"])
    if abs(listed - total) > 1e-3 * total:
        yield f"unserved: the list adds up to {listed}, the plan to {total}"
    for row in table_of(alarm, "service", "regions"):
        most = max(at[row["service"]].values(), default=0.0)
        if figure_differs(row["requests/s"], most):
            yield f"unserved of {row['service']}: {row['requests/s']}, at most {most} in the plan"


def _map(plan: Row, part: Element, _: Money) -> Iterator[str]:
    """Accelerators by region and pool of each moment, and what they do."""
    for picture in part.all("details", kind="moment"):
        moment = picture.first("summary").text  # type: ignore[union-attr]
        uses = {use["pool"]: use for use in plan["pools"] if _moment(use) == moment}
        for region in picture.all("article", kind="region"):
            name = region.first("h3").text  # type: ignore[union-attr]
            head = region.first("p", kind="quiet").text  # type: ignore[union-attr]
            own = [use for use in uses.values() if use["region"] == name]
            total = sum(use["accelerators"] for use in own)
            if figure_differs(head.split()[0], total):
                yield f"{moment} {name}: {head}, {total} accelerators in the plan"
            drawn = re.search(r"([\d,.]+) kW in use", head)
            kw = sum(use["power_kw"] for use in own)
            if drawn and abs(float(drawn[1].replace(",", "")) - kw) > 0.51:
                yield f"{moment} {name}: {drawn[1]} kW, {kw} in the plan"
            for pool in region.all("div", kind="pool"):
                yield from _parts(plan, uses, pool, moment)


def _parts(plan: Row, uses: dict[str, Row], pool: Element, moment: str) -> Iterator[str]:
    use = uses[pool.first("b").text]  # type: ignore[union-attr]
    place = f"{moment} {use['pool']}"
    size = pool.first("span", kind="quiet").text.split()[0]  # type: ignore[union-attr]
    if figure_differs(size, use["accelerators"]):
        yield f"{place}: {size}, {use['accelerators']} in the plan"
    expected: Counter[str] = Counter()
    for row in plan["placements"]:
        if row["pool"] == use["pool"] and _moment(row) == moment:
            expected[row["service"]] += row["accelerators"]
    # A replica of several hosts takes them whole, and leaves some accelerators of them.
    expected["rest of its hosts"] = use["used_accelerators"] - sum(expected.values())
    kept = use["used_accelerators"] + use["reserve_accelerators"] + use["maintenance_accelerators"]
    expected["idle"] = use["accelerators"] - kept
    expected["reserve"] += use["reserve_accelerators"]
    expected["out of service"] += use["maintenance_accelerators"]
    bar = pool.first("div", kind="bar")
    shown: Counter[str] = Counter()
    for each in bar.all("span"):  # type: ignore[union-attr]
        name, count = each.attributes["title"].rsplit(": ", 1)
        shown[name] += int(count)
    if sum(shown.values()) != use["accelerators"]:
        yield f"{place}: parts of {sum(shown.values())}, {use['accelerators']} in the plan"
    folded = any(name.endswith(" other services") for name in shown)
    for name, count in expected.items():
        if shown[name] != count and not (folded and name not in shown):
            yield f"{place}: {name} {shown[name]}, {count} in the plan"


def _idle(plan: Row, part: Element, money: Money) -> Iterator[str]:
    for row in table_of(part, "pool", "hardware"):
        uses = [use for use in plan["pools"] if use["pool"] == row["pool"]]
        total = sum(use["idle_usd"] for use in uses)
        left = {"reserve": 0.0, "out of service": 0.0}
        for use in uses:
            idle = use["accelerators"] - use["used_accelerators"]
            for name, of in (("reserve", "reserve"), ("out of service", "maintenance")):
                left[name] += use["idle_usd"] * use[f"{of}_accelerators"] / idle if idle > 0 else 0.0
        for name, usd in left.items():
            if row[name] or usd > 0.01:
                yield from cells(row["pool"], row, {name: ("money", usd)}, money)
        yield from cells(row["pool"], row, {"unused": ("money", total - sum(left.values()))}, money)
        if row["sold"]:
            sold = sum(use["retirement_usd"] for use in uses)
            yield from cells(row["pool"], row, {"sold": ("money", sold)}, money)


def _placements(plan: Row, part: Element, money: Money) -> Iterator[str]:
    rows = table_of(part, "service", "phase", "pool")
    yield from unequal("rows", len(rows), min(len(plan["placements"]), MOST_ROWS))
    for row, own in zip(rows, plan["placements"], strict=False):
        load = percent_differs(row["load"], own["utilisation"])
        if load:
            yield f"{own['service']}: load {row['load']}, {own['utilisation']} in the plan"
        expected = {
            "service": own["service"],
            "phase": own["phase"],
            "pool": own["pool"],
            "configuration": f"{own['config']} {own['hardware']}",
            "replicas": own["replicas"],
            "accelerators": own["accelerators"],
            "requests/s": ("number", own["requests_per_s"]),
            "TTFT ms": ("number", own["ttft_ms"], 3),
            "TPOT ms": ("number", own["tpot_ms"], 3),
            money.code: ("money", own["usd"]),
        }
        if "period" in row:
            expected["period"] = _moment(own)
        yield from cells(f"{own['service']} {own['config']}", row, expected, money)


def _capacity(plan: Row, part: Element, _: Money) -> Iterator[str]:
    headroom = {each["name"]: each["headroom"] for each in plan["inputs"]["services"]}
    asked: Counter[str] = Counter()
    for row in plan["inputs"]["demand"]:
        asked[row["service"]] += row["requests_per_s"]
    for each in part.all("div", kind="evidence"):
        name = each.first("b").text  # type: ignore[union-attr]
        text = each.first("span", kind="quiet").text  # type: ignore[union-attr]
        found = re.fullmatch(r"(\S+) requests/s; peak (\S+), with headroom (\S+)", text)
        if not found:
            yield f"{name}: {text}"
        elif figure_differs(found[2], asked[name]) or figure_differs(
            found[3], asked[name] * (1 + headroom[name])
        ):
            yield f"{name}: {text}, {asked[name]} and {headroom[name]} in the plan"


def _purchases(plan: Row, part: Element, money: Money) -> Iterator[str]:
    table = part.first("table", kind="timeline")
    rows = [] if table is None else table.rows[1:]
    orders: Sequence[Row] = [*plan["purchases"], *plan["retirements"]]
    yield from unequal("lines of the timeline", len(rows), len(orders))
    for row, own in zip(rows, orders, strict=False):
        count = own.get("units", own.get("hosts"))
        noun = own["unit"] + ("" if count == 1 else "s")
        assumed = " (assumed)" if own["assumed"] else ""
        title = f"{own['kind']} {count:,} {noun} {own['hardware']}{assumed}"
        title += f" {own.get('offer', own['pool'])} in {own['region']}"
        yield from unequal("title", row[0], " ".join(title.split()))
        if money.differs(row[-1], own["usd"]):
            yield f"{title}: {row[-1]}, {own['usd']} in the plan"
    options = table_of(part, "pool", "hardware", "option")
    yield from unequal("options", len(options), len(plan["supply_options"]))
    for row, own in zip(options, plan["supply_options"], strict=False):
        rate = own["usd_per_accelerator_hour"] / money.usd_per_unit
        expected = {name: own[name] for name in ("pool", "hardware", "option", "offer")}
        expected |= {"units": ("number", own["units"]), "cheapest period": own["period"]}
        expected |= {f"{money.code}/accelerator-h": ("number", rate, 3)}
        yield from cells(f"{own['pool']} {own['option']}", row, expected, money)


def _commitments(plan: Row, part: Element, money: Money) -> Iterator[str]:
    owed: dict[str, Counter[str]] = defaultdict(Counter)
    for row in plan["commitments"]:
        owed[row["quarter"]][row["kind"]] += row["usd"]
    rows = table_of(part, "quarter")
    yield from unequal("quarters", [row["quarter"] for row in rows], [*owed])
    for row in rows:
        own = owed[row["quarter"]]
        expected: Row = {f"owed, {money.code}": ("money", sum(own.values()))}
        for head, kind in (("leases", "lease"), ("rent terms", "term"), ("loans", "loan")):
            expected[head] = ("money", own[kind] or None)
        yield from cells(row["quarter"], row, expected, money)
    values = table_of(part, "pool", "what")
    yield from unequal("owned", len(values), len(plan["remaining_values"]))
    for row, own in zip(values, plan["remaining_values"], strict=False):
        age = "unknown" if own["age_quarters"] is None else own["age_quarters"]
        expected = {"pool": own["pool"], "what": own["item"], "hosts": ("number", own["hosts"])}
        expected |= {"quarters in service": age, f"book value, {money.code}": ("money", own["book_usd"])}
        yield from cells(own["item"], row, expected, money)
    total = sum(row["usd"] for row in plan["commitments"])
    said = re.search(r"(\S+(?: \S+)?(?: [kMB])?) owed for", part.first("p").text)  # type: ignore[union-attr]
    if bool(said) != bool(owed) or (said and money.differs(said[1], total)):
        yield f"owed in all: {said and said[1]}, {total} in the plan"


def _cost(plan: Row, part: Element, money: Money) -> Iterator[str]:
    by_service: Counter[str] = Counter()
    for row in plan["placements"]:
        by_service[row["service"]] += row["usd"]
    kinds = {name.replace("_", " "): usd for name, usd in plan["cost_breakdown"].items()}
    for label, known in (("cost by kind", kinds), ("cost by service", dict(by_service))):
        figure = part.first("svg", **{"aria-label": label})
        if figure is None:
            yield f"no figure {label}"
            continue
        names, amounts = _drawn(figure)
        yield from unequal(f"{label}: bars", len(names), len(amounts))
        for name, amount in zip(names, amounts, strict=False):
            usd = plan["objective_usd"] if name == "TCO" else known.get(name)
            if usd is not None and money.differs(amount, usd):
                yield f"{label}: {name} {amount}, {usd} in the plan"
    lines = table_of(part, "period", "pool", "what")
    bill = plan["inputs"]["cost_lines"]
    yield from unequal("bill", len(lines), min(len(bill), MOST_ROWS))
    for row, own in zip(lines, bill, strict=False):
        expected = {name: own[name] for name in ("period", "pool", "kind", "price", "unit")}
        expected |= {"what": own["service"] or own["item"], "quantity": ("number", own["quantity"])}
        expected |= {money.code: ("money", own["usd"])}
        yield from cells(f"bill {own['period']} {own['item']}", row, expected, money)


def _drawn(figure: Element) -> tuple[list[str], list[str]]:
    """Return the names on the axis of a waterfall and the amounts at its bars."""
    axis = [text.text for group in figure.all("g") if "ytick_" in group.attributes.get("id", "")
            for text in group.all("text")]  # fmt: skip
    at_bars = [
        text.text
        for group in figure.all("g")
        if re.search(r"-axes_1$", group.attributes.get("id", ""))
        for each in group.held
        if isinstance(each, Element) and "text_" in each.attributes.get("id", "")
        for text in each.all("text")
    ]
    return list(dict.fromkeys(axis)), at_bars


def _limits(plan: Row, part: Element, money: Money) -> Iterator[str]:
    rows = table_of(part, "limit")
    yield from unequal("rows", len(rows), len(plan["binding"]))
    for row, own in zip(rows, plan["binding"], strict=False):
        expected = {"limit": own["name"], "family": own["family"], "unit": own["unit"]}
        expected |= {"used": ("number", own["used"]), "of": ("number", own["limit"])}
        yield from cells(own["name"], row, expected, money)


def _latency(plan: Row, part: Element, _: Money) -> Iterator[str]:
    outside = {each["name"]: each["outside_ms"] for each in plan["inputs"]["services"]}
    worst: dict[Any, float] = defaultdict(float)
    for row in plan["placements"]:
        for name, other_phase in (("ttft", "decode"), ("tpot", "prefill")):
            if row[f"{name}_ms"] is not None and row["phase"] != other_phase:
                key = row["service"], row["region"], name
                worst[key] = max(worst[key], row[f"{name}_ms"])
    for row in table_of(part, "service", "region"):
        for head in ("TTFT", "TPOT"):
            found = re.match(r"(\S+) ms", row[head])
            extra = outside[row["service"]] if head == "TTFT" else 0.0
            value = worst[row["service"], row["region"], head.lower()] + extra
            if found and figure_differs(found[1], value):
                yield f"{row['service']} {row['region']}: {head} {found[1]}, {value} in the plan"


def _uncertain(plan: Row, part: Element, money: Money) -> Iterator[str]:
    rows = table_of(part, "demand", "probability")
    yield from unequal("scenarios", len(rows), len(plan["demand_scenarios"]))
    for row, own in zip(rows, plan["demand_scenarios"], strict=False):
        best = "not computed" if own["best_usd"] is None else ("money", own["best_usd"])
        expected = {"demand": own["name"], "probability": ("percent", own["probability"])}
        expected |= {"TCO": ("money", own["usd"]), "best plan for it alone": best}
        expected |= {"regret": ("money", own["regret_usd"])}
        expected |= {"unserved on average, requests/s": ("number", own["unmet_requests_per_s"])}
        yield from cells(own["name"], row, expected, money)


def _assumptions(plan: Row, part: Element, money: Money) -> Iterator[str]:
    prices = table_of(part, "price", "value")
    yield from unequal("prices", len(prices), len(plan["inputs"]["prices"]))
    for row, own in zip(prices, plan["inputs"]["prices"], strict=False):
        expected = {"price": own["name"], "value": ("number", own["value"]), "unit": own["unit"]}
        yield from cells(own["name"], row, expected, money)


SECTIONS: Final = {
    "map": _map, "idle": _idle, "placements": _placements, "capacity": _capacity, "purchases": _purchases,
    "commitments": _commitments, "cost": _cost, "limits": _limits, "latency": _latency,
    "uncertain": _uncertain, "assumptions": _assumptions,
}  # fmt: skip
