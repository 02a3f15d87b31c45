"""The report's page against plan.json."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.oracles.shown.amounts import Money, figure_differs, percent_differs, unequal
from tests.oracles.shown.page import Element
from tests.oracles.shown.page_tables import MOST_ROWS, cells, moment_of, table_of
from tests.oracles.shown.pictures import cost_faults, evidence_faults, map_faults

Row = dict[str, Any]


def report_faults(plan: Row, page: Element, money: Money) -> Iterator[str]:
    """Yield what the page says otherwise than plan.json."""
    sections = {each.attributes["id"]: each for each in page.all("section")}
    yield from _head(plan, page, money)
    for name, read in SECTIONS.items():
        if name in sections:
            yield from (f"{name}: {why}" for why in read(plan, sections[name], money))


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
        at[row["service"]][moment_of(row)] += row["requests_per_s"]
    listed = sum(float(text.rsplit(": ", 1)[1].split()[0].replace(",", "")) for text in said)
    total = sum(row["requests_per_s"] for row in plan["unmet"])
    if abs(listed - total) > 1e-3 * total:
        yield f"unserved: the list adds up to {listed}, the plan to {total}"
    for row in table_of(alarm, "service", "regions"):
        most = max(at[row["service"]].values(), default=0.0)
        if figure_differs(row["requests/s"], most):
            yield f"unserved of {row['service']}: {row['requests/s']}, at most {most} in the plan"


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
            expected["period"] = moment_of(own)
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
    for row, own in zip(table_of(part, "planned for"), plan["wrong_forecasts"], strict=False):
        total = "no plan found" if own["usd"] is None else ("money", own["usd"])
        expected = {"planned for": own["planned_for"], "actual demand": own["turns_out"], "TCO": total}
        expected |= {"above the best plan for it": ("money", own["extra_usd"])}
        yield from cells(f"{own['planned_for']} for {own['turns_out']}", row, expected, money)
    planned = {(row["period"], row["offer"], row["pool"]): row["units"] for row in plan["purchases"]}
    for row in table_of(part, "period", "offer", "pool"):
        units = planned.get((row["period"], row["offer"], row["pool"]), 0)
        yield from cells(row["offer"], row, {"this plan": ("number", units)}, money)


def _assumptions(plan: Row, part: Element, money: Money) -> Iterator[str]:
    prices = table_of(part, "price", "value")
    yield from unequal("prices", len(prices), len(plan["inputs"]["prices"]))
    for row, own in zip(prices, plan["inputs"]["prices"], strict=False):
        expected = {"price": own["name"], "value": ("number", own["value"]), "unit": own["unit"]}
        yield from cells(own["name"], row, expected, money)


SECTIONS: Final = {
    "map": map_faults, "idle": _idle, "placements": _placements, "capacity": _capacity,
    "purchases": _purchases, "commitments": _commitments, "cost": cost_faults, "limits": _limits,
    "latency": _latency,
    "uncertain": _uncertain, "assumptions": _assumptions,
    "evidence": evidence_faults,
}  # fmt: skip
