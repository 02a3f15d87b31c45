"""Output of `plan solve` and `plan explain --full` without a terminal, against plan.json."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from tests.oracles.shown.amounts import Money, figure_differs, percent_differs, unequal

Row = dict[str, Any]

MORE: Final = re.compile(r"; and \d+ more$")

AMOUNT: Final = r"([-+]?(?:\$|[A-Z]{3} )[0-9.e+]+(?: [kMB]\b)?)"


def screen_faults(plan: Row, text: str, money: Money) -> Iterator[str]:
    """Yield what is printed otherwise than in plan.json."""
    lines = text.splitlines()
    yield from _head(plan, lines, money)
    yield from _cost(plan, lines, money)
    yield from _orders(plan, lines, money)
    yield from _beyond(plan, lines, money)
    yield from _leaving(plan, lines, money)
    yield from _limits(plan, paragraph(lines, "Binding constraints: "))
    yield from _options(plan, _table(lines, "Buy, rent", "pool", "units"), money)
    likeliest = max(plan["demand_scenarios"], key=lambda row: row["probability"], default={"name": None})
    shown = str(likeliest["name"]) if plan["demand_scenarios"] else None
    pools = _table(lines, "Pools", "pool")
    if pools and "most used" in pools[0]:
        yield from _brief_pools(plan, pools, shown, money)
    else:
        yield from _pools(plan, pools, shown, money)
    yield from _services(plan, _table(lines, "Services, at their peaks", "service"), shown, money)
    for title in [line for line in lines if line.startswith("Placements")]:
        yield from _placements(plan, title, _table(lines, title, "service"), shown, money)


HEADS: Final = (
    "Decision: ", "Optimality gap ", "Currency: ", "Income tax: ", "Extension: ", "Simpler plan: ", "Weak",
    "unmet ", "Unmet", "Orders: ", "Retire: ", "Leases end: ", "Cost: ", "After ", "Binding constraints: ",
    "Demand scenarios", "Purchases and rentals", "Pools", "Services, at", "Buy, rent", "Placements",
    "TTFT, TPOT", "Changes", "Daily changes", "Offline", "Served from", "Without queueing", "Data quality",
    "TPOT error", "Every moment", "At most:", "Inaccurate",
)  # fmt: skip
"""How paragraphs and tables begin; lines between are the rest of a paragraph, or of a cell."""


def paragraph(lines: list[str], head: str) -> str:
    """Return a paragraph, however it is broken."""
    at = next((n for n, line in enumerate(lines) if line.startswith(head)), None)
    if at is None:
        return ""
    rest = []
    for line in lines[at + 1 :]:
        if line.startswith(HEADS):
            break
        rest.append(line)
    return " ".join(part.strip() for part in [lines[at], *rest])


def _table(lines: list[str], title: str, first: str, filled: str = "") -> list[Row]:
    """Return the rows of a table by its heads: columns are parted by blanks that go through all its lines.

    Parameters
    ----------
    lines : list[str]
        Of the screen.
    title : str
        How the table begins.
    first : str
        The head of its first column.
    filled : str
        The head of a column that every row fills; the last one if left out.
    """
    at = next((n for n, line in enumerate(lines) if line.startswith(title)), None)
    while at is not None and at < len(lines) and not lines[at].startswith(f"{first} "):
        at = at + 1 if at + 1 < len(lines) else None
    if at is None:
        return []
    width = len(lines[at])
    own = [lines[at]]
    for line in lines[at + 1 :]:
        if len(line) != width or line.startswith(HEADS):
            break
        own.append(line)
    blank = [all(line[n] == " " for line in own) for n in range(width)]
    starts = [n for n in range(width) if not blank[n] and (n == 0 or (blank[n - 1] and blank[max(n - 2, 0)]))]
    ends = [*starts[1:], width]
    parts = [[line[a:b].strip() for a, b in zip(starts, ends, strict=True)] for line in own]
    rows: list[Row] = []
    for cells in parts[1:]:
        row = dict(zip(parts[0], cells, strict=True))
        if rows and not (row[filled] if filled else cells[-1]):
            # A cell that is longer than its column goes on below.
            rows[-1] = {head: f"{above} {row[head]}".strip() for head, above in rows[-1].items()}
        else:
            rows.append(row)
    return rows


def _head(plan: Row, lines: list[str], money: Money) -> Iterator[str]:
    top = paragraph(lines, "")
    first = re.search(rf": TCO {AMOUNT}", top)
    if first is None or money.differs(first[1], plan["objective_usd"]):
        yield f"first line: {top}, {plan['objective_usd']} in the plan"
    gap = re.search(rf"Optimality gap (\S+) \(lower bound {AMOUNT}", paragraph(lines, "Optimality gap"))
    if gap is None or percent_differs(gap[1], plan["gap"]) or money.differs(gap[2], plan["bound_usd"]):
        yield f"{paragraph(lines, 'Optimality gap')}: {plan['gap']}, {plan['bound_usd']} in the plan"
    tokens = re.search(rf"{AMOUNT} per million tokens", top)
    if tokens and money.differs(tokens[1], plan["usd_per_million_tokens"], 3):
        yield f"{tokens[0]}: {plan['usd_per_million_tokens']} in the plan"
    unmet: Counter[Any] = Counter()
    for row in plan["unmet"]:
        unmet[row["period"], row["slice"], row["scenario"]] += row["requests_per_s"]
    short = re.search(r"(?:up to )?(\S+) requests/s unmet", top)
    most = max(unmet.values(), default=0.0)
    if short and abs(float(short[1].replace(",", "")) - most) > 1e-3 * most:
        yield f"{short[0]}: {most} in the plan"
    if not short and most > 1e-3:
        yield f"{top}: {most} requests/s are unmet in the plan"


def _cost(plan: Row, lines: list[str], money: Money) -> Iterator[str]:
    line = paragraph(lines, "Cost: ")
    kinds = dict(
        re.findall(rf"([a-z ]+?) {AMOUNT}(?=[,;])", line.removeprefix("Cost: ").split("; ")[0] + ";")
    )
    expected = {name.replace("_", " "): usd for name, usd in plan["cost_breakdown"].items()}
    yield from unequal("kinds of the line Cost", [name.strip() for name in kinds], [*expected])
    for name, shown in kinds.items():
        if money.differs(shown, expected.get(name.strip(), 0.0)):
            yield f"Cost {name}: {shown}, {expected.get(name.strip())} in the plan"
    idle = re.search(rf"idle capacity is {AMOUNT}", line)
    total = sum(use["idle_usd"] for use in plan["pools"])
    if (idle and money.differs(idle[1], total)) or (not idle and total > 0.01):
        yield f"{line}: {total} of idle capacity in the plan"
    leaving = re.search(rf"hosts that leave {AMOUNT}", line)
    left = sum(use["retirement_usd"] for use in plan["pools"])
    if leaving and money.differs(leaving[1], left):
        yield f"{leaving[0]}: {left} in the plan"


def _orders(plan: Row, lines: list[str], money: Money) -> Iterator[str]:
    """The sum of all orders in the decision, and each order in its line where all have room."""
    decided = [row for row in plan["purchases"] if not row["assumed"]]
    found = re.search(rf": {AMOUNT} of {AMOUNT}", paragraph(lines, "Decision: "))
    if decided and (
        found is None
        or money.differs(found[1], sum(row["usd"] for row in decided))
        or money.differs(found[2], plan["objective_usd"])
    ):
        yield f"{paragraph(lines, 'Decision')}: {sum(row['usd'] for row in decided)} in the plan"
    price = re.search(rf"\(purchase price {AMOUNT}\)", paragraph(lines, "Decision: "))
    capex = sum(row["capex_usd"] for row in decided)
    if bool(price) != bool(capex) or (price and money.differs(price[1], capex)):
        yield f"purchase price {price and price[1]}: {capex} in the plan"
    line = paragraph(lines, "Orders: ")
    parts = [] if not line or MORE.search(line) else line.removeprefix("Orders: ").split("; ")
    for part, own in zip(parts, decided, strict=False):
        noun = own["unit"] + ("" if own["units"] == 1 else "s")
        if f" {own['units']:,} {noun} {own['hardware']}" not in part:
            yield f"{part}: {own['units']} {noun} in the plan"
        paid = re.search(rf", {AMOUNT}(?:, price {AMOUNT})?\)$", part)
        if paid is None or money.differs(paid[1], own["usd"]):
            yield f"{part}: {own['usd']} in the plan"
        elif paid[2] and money.differs(paid[2], own["capex_usd"]):
            yield f"{part}: price {own['capex_usd']} in the plan"


def _beyond(plan: Row, lines: list[str], money: Money) -> Iterator[str]:
    owed: dict[str, float] = defaultdict(float)
    for row in plan["commitments"]:
        owed[row["quarter"]] += row["usd"]
    line = paragraph(lines, "After ")
    found = re.search(rf"{AMOUNT} owed for", line)
    if bool(found) != bool(owed) or (found and money.differs(found[1], sum(owed.values()))):
        yield f"{line}: {sum(owed.values())} owed in the plan"
    for quarter, shown in re.findall(rf"[(,] ?(\S+) {AMOUNT}", line) if owed else ():
        usd = owed[quarter] if quarter in owed else sum([*owed.values()][4:])
        if money.differs(shown, usd):
            yield f"{line}: {quarter} {usd} in the plan"
    books = re.search(rf"worth {AMOUNT} in the books", line)
    book = sum(row["book_usd"] or 0.0 for row in plan["remaining_values"])
    if books and money.differs(books[1], book):
        yield f"{line}: {book} in the plan"


def _leaving(plan: Row, lines: list[str], money: Money) -> Iterator[str]:
    for kind, head in (("retire", "Retire: "), ("return", "Leases end: ")):
        rows = [row for row in plan["retirements"] if row["kind"] == kind and not row["assumed"]]
        line = paragraph(lines, head)
        parts = [] if not line or MORE.search(line) else line.removeprefix(head).split("; ")
        if line and not MORE.search(line):
            yield from unequal(f"{head}parts", len(parts), len(rows))
        for part, own in zip(parts, rows, strict=False):
            if not part.startswith(f"{own['hosts']:,} {own['unit']}"):
                yield f"{head}{part}: {own['hosts']} {own['unit']} in the plan"
            sold = re.search(rf"sold for {AMOUNT}", part)
            if bool(sold) != bool(own["resale_usd"]) or (sold and money.differs(sold[1], own["resale_usd"])):
                yield f"{head}{part}: sold for {own['resale_usd']} in the plan"


def _limits(plan: Row, line: str) -> Iterator[str]:
    """Every limit that is printed is one of the plan; in brief they are fewer."""
    if not plan["binding"] or not line:
        yield from unequal("Binding constraints", bool(line), bool(plan["binding"]))
        return
    for shown, unit in re.findall(r" of ([\d.,e+]+) ([a-zA-Z/ ]+?)(?=[;,]| and |$)", line):
        if not any(
            not figure_differs(shown, row["limit"], 5) for row in plan["binding"] if row["unit"] == unit
        ):
            yield f"Binding constraints: {shown} {unit} is a limit of none in the plan"


def _options(plan: Row, rows: list[Row], money: Money) -> Iterator[str]:
    for row, own in zip(rows, plan["supply_options"], strict=False):
        place = f"option {own['option']} of {own['pool']}"
        yield from unequal(f"{place}: units", row["units"], str(own["units"]))
        rate = own["usd_per_accelerator_hour"] / money.usd_per_unit
        if figure_differs(row[f"{money.code}/accelerator-h"], rate, 3):
            yield f"{place}: {row[f'{money.code}/accelerator-h']}, {rate} in the plan"
    if rows:
        yield from unequal("options", len(rows), len(plan["supply_options"]))


def _pools(plan: Row, rows: list[Row], shown: str | None, money: Money) -> Iterator[str]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for use in plan["pools"]:
        groups[use["period"], use["pool"]].append(use)
    yield from unequal("lines of pools", len(rows), len(groups))
    for row, uses in zip(rows, groups.values(), strict=False):
        here = [use for use in uses if use["scenario"] == shown]
        place = f"Pools {row['pool']} {row.get('period', '')}"
        yield from unequal(
            f"{place}: used", row["used"], " / ".join(str(u["used_accelerators"]) for u in here)
        )
        yield from unequal(f"{place}: size", row["accelerators"], str(here[0]["accelerators"]))
        for text, use in zip(row["in use"].split(" / "), here, strict=False):
            if percent_differs(text, use["utilisation"]):
                yield f"{place}: {text} in use, {use['utilisation']} in the plan"
        for head, name in ((money.code, "usd"), (f"idle {money.code}", "idle_usd")):
            usd = sum(use[name] for use in uses)
            if money.differs(row[head], usd):
                yield f"{place}: {head} {row[head]}, {usd} in the plan"


def _brief_pools(plan: Row, rows: list[Row], shown: str | None, money: Money) -> Iterator[str]:
    uses: dict[str, list[Row]] = defaultdict(list)
    for use in plan["pools"]:
        uses[use["pool"]].append(use)
    named = {row["pool"] for row in rows}
    for row in rows:
        more = re.fullmatch(r"\d+ more", row["pool"])
        own = uses.get(row["pool"], [])
        if more:
            own = [use for name, of in uses.items() if name not in named for use in of]
        else:
            here = [use for use in own if use["scenario"] == shown]
            most = max(use["used_accelerators"] for use in here)
            yield from unequal(f"Pools {row['pool']}: most used", row["most used"], str(most))
        for head, name in ((money.code, "usd"), (f"idle {money.code}", "idle_usd")):
            usd = sum(use[name] for use in own)
            if money.differs(row[head], usd):
                yield f"Pools {row['pool']}: {head} {row[head]}, {usd} in the plan"


def _services(plan: Row, rows: list[Row], shown: str | None, money: Money) -> Iterator[str]:
    usd: Counter[str] = Counter()
    served: dict[str, Counter[Any]] = defaultdict(Counter)
    for row in plan["placements"]:
        usd[row["service"]] += row["usd"]
        if row["scenario"] == shown and row["phase"] != "decode":
            served[row["service"]][row["period"], row["slice"]] += row["requests_per_s"]
    for row in rows:
        name = row["service"]
        if re.fullmatch(r"\d+ more", name) and name not in usd:
            rest = sum(each for service, each in usd.items() if service not in {r["service"] for r in rows})
            if money.differs(row[money.code], rest):
                yield f"Services {name}: {row[money.code]}, {rest} in the plan"
            continue
        if money.differs(row[money.code], usd[name]):
            yield f"Services {name}: {row[money.code]}, {usd[name]} in the plan"
        most = max(served[name].values())
        if figure_differs(row["req/s"], most):
            yield f"Services {name}: {row['req/s']} requests/s, {most} in the plan"


def _placements(plan: Row, title: str, rows: list[Row], shown: str | None, money: Money) -> Iterator[str]:
    periods = [period for period in plan["periods"] if re.search(rf" {re.escape(period)}\b", title)]
    period = periods[0] if periods else plan["periods"][0]
    chance = {row["name"]: row["probability"] for row in plan["demand_scenarios"]}.get(shown or "", 1.0)
    groups: dict[Any, list[Row]] = defaultdict(list)
    for each in plan["placements"]:
        if (each["period"], each["scenario"]) == (period, shown):
            groups[each["service"], each["region"], each["slice"]].append(each)
    if "nothing runs" in title:
        yield from unequal(title, len(groups), 0)
        return
    yield from unequal(f"lines of {title}", len(rows), len(groups))
    for row, (key, own) in zip(rows, groups.items(), strict=False):
        place = f"{title.split(' (', maxsplit=1)[0]} {' '.join(filter(None, key))}"
        yield from unequal(f"{place}: service", row["service"].replace(" ", ""), key[0].replace(" ", ""))
        served = sum(each["requests_per_s"] for each in own if each["phase"] != "decode")
        if figure_differs(row["req/s"], served):
            yield f"{place}: {row['req/s']} requests/s, {served} in the plan"
        total = sum(each["accelerators"] for each in own)
        load = sum(each["utilisation"] * each["accelerators"] for each in own) / total
        if percent_differs(row["load"], load):
            yield f"{place}: load {row['load']}, {load} in the plan"
        usd = sum(each["usd"] for each in own) / chance
        if money.differs(row[money.code], usd):
            yield f"{place}: {row[money.code]}, {usd} in the plan"
        replicas: Counter[str] = Counter()
        for each in own:
            replicas[f"{each['phase'][0].upper()} {{}}x {each['config']} {each['hardware']}"] += each[
                "replicas"
            ]
        text = ", ".join(name.format(count) for name, count in replicas.items())
        said = row["replicas x config on hardware"]
        yield from unequal(f"{place}: replicas", said.replace(" ", ""), text.replace(" ", ""))
