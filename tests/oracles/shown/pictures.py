"""Pictures of the page against plan.json: the fleet, the waterfalls of the cost, the quality of data."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.oracles.shown.amounts import Money, figure_differs, percent_differs, unequal
from tests.oracles.shown.page import Element
from tests.oracles.shown.page_tables import MOST_ROWS, Row, cells, moment_of, table_of


def map_faults(plan: Row, part: Element, _: Money) -> Iterator[str]:
    """Accelerators by region and pool of each moment, and what they do."""
    for picture in part.all("details", kind="moment"):
        moment = picture.first("summary").text  # type: ignore[union-attr]
        uses = {use["pool"]: use for use in plan["pools"] if moment_of(use) == moment}
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
        if row["pool"] == use["pool"] and moment_of(row) == moment:
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


def cost_faults(plan: Row, part: Element, money: Money) -> Iterator[str]:
    """Yield what the waterfalls and the bill of the page say otherwise."""
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


def evidence_faults(plan: Row, part: Element, money: Money) -> Iterator[str]:
    """Yield what the bars of data quality say otherwise."""
    usd: Counter[str] = Counter()
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for row in plan["placements"]:
        for name in ("all", row["hardware"]):
            usd[name] += row["usd"]
            for kind, share in row["provenance"].items():
                by_kind[name][kind] += share * row["usd"]
    for bar in part.all("div", kind="evidence"):
        name = bar.first("b").text  # type: ignore[union-attr]
        spent = bar.first("span", kind="quiet").text  # type: ignore[union-attr]
        if money.differs(spent, usd[name]):
            yield f"{name}: {spent}, {usd[name]} in the plan"
        for each in bar.all("span"):
            kind, _, share = each.attributes.get("title", "").partition(" ")
            if share and percent_differs(share, by_kind[name][kind] / usd[name]):
                yield f"{name}: {kind} {share}, {by_kind[name][kind] / usd[name]} in the plan"
