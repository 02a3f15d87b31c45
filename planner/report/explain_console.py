"""Print the answers of `plan explain`."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import counted, figure, money, money_range
from fleetplan.fleet.inventory import Offer
from fleetplan.planner.plan import Conflict, Placement, most_at_once
from fleetplan.planner.questions.service_history import ServiceHistory, left_out
from fleetplan.planner.questions.why_not.answer import ExtraCost, WhyNot
from fleetplan.planner.questions.why_not.assumed_offer import price_text
from fleetplan.planner.questions.why_not.break_even import MOST_SPEED, BreakEven
from fleetplan.planner.questions.why_not.subject import SubjectKind
from fleetplan.planner.questions.why_not.suitability import Suitability

GIFT_RATIO = 0.001
"""Share of its price below which an offer counts as free."""

PLACEMENTS_SHOWN = 6
"""Largest placements printed for an item that the plan contains."""


def print_conflict(conflict: Conflict, console: Console) -> None:
    """Print the requirements in conflict and the resolutions.

    Parameters
    ----------
    conflict : Conflict
        Conflict from plan.json.
    console : Console
        Output console.
    """
    count = len(conflict.requirements)
    if count == 0:
        console.print("The time was too short to find which requirements conflict.")
    elif count == 1:
        console.print("This requirement cannot be met:")
    elif conflict.minimal:
        console.print(
            f"These {count} requirements conflict; without any one of them the others can be met together:"
        )
    else:
        console.print(
            f"These {count} requirements conflict; a smaller conflict may exist (not proven minimal):"
        )
    for name in conflict.requirements:
        console.print(f"  {name}", soft_wrap=True, markup=False)
    if conflict.other_conflicts:
        console.print("Other requirements conflict as well; each resolution removes every conflict.")
    within = "" if conflict.complete else " within the time limit"
    console.print("Resolutions, each solved:" if conflict.ways_out else f"No resolution was found{within}.")
    for way in conflict.ways_out:
        gives = "; ".join(
            f"{give.change}{'' if give.least else ' (a smaller change may be enough)'}" for give in way.gives
        )
        cost = f"TCO {money(way.objective_usd)} (lower bound {money(way.bound_usd)})"
        console.print(f"  {gives}: {cost}", soft_wrap=True, markup=False)
    if conflict.ways_out and all(give.least for way in conflict.ways_out for give in way.gives):
        console.print("  each change is the smallest that works, in whole steps", style="dim")
    if not conflict.complete:
        console.print("  the time limit ended the analysis early; plan explain searches longer", style="dim")


def print_suitability(found: Suitability, console: Console) -> None:
    """Print why an item does not suit an infeasible fleet."""
    title = f"{found.subject.kind} {found.subject.name}"
    console.print(f"{title}: the fleet is infeasible with it or without it", style="bold", markup=False)
    for reason in found.reasons:
        whom = "" if reason.service is None else f"{reason.service}: "
        console.print(f"  {reason.cause}: {whom}{reason.text}", soft_wrap=True, markup=False)
    if found.services and found.subject.kind in (SubjectKind.HARDWARE, SubjectKind.CONFIGURATION):
        names = ", ".join(found.services)
        console.print(f"  configurations meet the limits of: {names}", soft_wrap=True, markup=False)
    elif not found.reasons:
        console.print("  no single reason excludes it", markup=False)


def print_why_not(answer: WhyNot, console: Console) -> None:
    """Print why an item is not in a plan; for an item in the plan, print its value."""
    subject = answer.subject
    title = f"{subject.kind} {subject.name}"
    if answer.used or (answer.forced is not None and not answer.reasons):
        _print_used(answer, title, console)
        return
    console.print(f"{title} is not in the plan", style="bold", markup=False)
    for reason in answer.reasons:
        whom = "" if reason.service is None else f"{reason.service}: "
        console.print(f"  {reason.cause}: {whom}{reason.text}", soft_wrap=True, markup=False)
    if answer.extra is not None:
        what = f"at least {subject.must_use.share:.2%} of a class of requests served by it"
        if subject.must_use.offer is not None:
            what = "at least one unit bought or rented"
        console.print(f"  with {what}: {_more(answer.extra)}", soft_wrap=True, markup=False)
    if answer.price is not None:
        for line in _price_lines(answer.price, answer.priced):
            console.print(f"  {line}", soft_wrap=True, markup=False)
    if answer.speed is not None:
        console.print(f"  {_speed_text(answer.speed)}", soft_wrap=True, markup=False)
    for needed in answer.latency:
        then = "no plan contains it even then" if needed.extra is None else f"then {_more(needed.extra)}"
        text = f"first configuration of it at {needed.text}: {then} (compared with this plan)"
        console.print(f"  {text}", soft_wrap=True, markup=False)
    if answer.conflict is not None:
        print_conflict(answer.conflict.record(), console)


def _print_used(answer: WhyNot, title: str, console: Console) -> None:
    accelerators = max(most_at_once(answer.used, lambda _: None).values(), default=0)
    console.print(
        f"{title} is in the plan: {counted(accelerators, 'accelerator')}", style="bold", markup=False
    )
    for row in sorted(answer.used, key=lambda row: -row.accelerators)[:PLACEMENTS_SHOWN]:
        console.print(f"  {_placement_text(row)}", soft_wrap=True, markup=False)
    if len(answer.used) > PLACEMENTS_SHOWN:
        console.print(f"  and {len(answer.used) - PLACEMENTS_SHOWN} more")
    if answer.extra is not None:
        console.print(f"  without it: {_more(answer.extra)}", markup=False)
    elif answer.subject.kind != "region":
        none = (
            "no plan serves everything (proven)"
            if answer.proven
            else "no plan was found within the time limit"
        )
        console.print(f"  without it, {none}")


def _placement_text(row: Placement) -> str:
    when = " ".join(part for part in row.moment_key if part)
    return (
        f"{when} {row.region}: {row.service} {row.phase} {row.replicas}x {row.config} on "
        f"{row.hardware} in {row.pool}, {figure(row.requests_per_s)} requests/s"
    )


def _more(extra: ExtraCost) -> str:
    worth = money_range(extra.least_usd, extra.most_usd, signed=True)
    return f"{worth} (range from the optimality gap)" if " to " in worth else worth


def _price_lines(found: BreakEven, offers: tuple[Offer, ...]) -> list[str]:
    """Return the price of each offer at which the item enters the cheapest plan."""
    if found.proven_in is None and found.proven_out is None:
        return ["price: undecided within the optimality gap"]
    if found.proven_in is None and found.proven_out is not None and found.proven_out < GIFT_RATIO:
        return ["price: even at a price of zero it is not in the cheapest plan"]
    lines = []
    for offer in offers:
        texts = []
        if found.proven_in is not None:
            texts.append(f"in the cheapest plan at {price_text(offer, found.proven_in)} or less")
        if found.proven_out is not None:
            texts.append(f"not in it at {price_text(offer, found.proven_out)} or more")
        now = f"now {price_text(offer, 1.0)}, {offer.price_source}"
        lines.append(f"price of {offer.name}: {'; '.join(texts)} ({now})")
    return lines


def _speed_text(found: BreakEven) -> str:
    if found.proven_in is None:
        return f"speed: not proven to be in the cheapest plan even at {MOST_SPEED:g} times its speed"
    below = "" if found.proven_out is None else f"; proven not in it at {found.proven_out:.3g} times"
    return f"speed: in the cheapest plan at {found.proven_in:.3g} times its speed{below}"


def print_story(found: ServiceHistory, console: Console) -> None:
    """Print how one service gets from its landscape to its placements."""
    service = found.service
    limits = [
        f"{name} {value:g} ms"
        for name, value in (("TTFT", service.ttft_ms), ("TPOT", service.tpot_ms))
        if value is not None
    ]
    console.print(
        f"{service.name}: {service.model or 'own rates'}; {', '.join(limits) or 'no latency limit'}"
    )
    left = sum(row.candidates for row in found.hardware)
    console.print(f"{counted(found.evaluated, 'configuration')} evaluated, {counted(left, 'candidate')}")
    table = Table(box=None, pad_edge=False)
    for name in ("hardware", "excluded, by reason", "candidates", "cheapest of each phase at full load"):
        table.add_column(name, overflow="fold")
    for row in found.hardware:
        lines = []
        for best in row.cheapest:
            cost = "not every class"
            if best.usd_per_million_requests is not None:
                cost = f"{money(best.usd_per_million_requests)} a million requests"
            lines.append(
                f"{best.phase} {best.config}: {cost}; {counted(best.placed, 'accelerator')} in the plan"
            )
        name = f"{row.hardware}\n{row.price}"
        table.add_row(escape(name), escape(left_out(row)), str(row.candidates), escape("\n".join(lines)))
    console.print(table)
    console.print(f"In the plan, {money(found.usd)}:")
    for placement in found.placements:
        console.print(f"  {_placement_text(placement)}, {money(placement.usd)}", soft_wrap=True, markup=False)
    for unmet in found.unmet:
        place = " ".join([unmet.region, *(part for part in unmet.moment_key if part)])
        console.print(
            f"  unserved in {place}: {figure(unmet.requests_per_s)} requests/s", style="red", markup=False
        )
    for limit in found.binding:
        text = f"{limit.name}: {figure(limit.used, 5)} of {figure(limit.limit, 5)} {limit.unit}"
        console.print(f"  binding: {text}", soft_wrap=True, markup=False)
