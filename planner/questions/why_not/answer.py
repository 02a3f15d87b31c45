"""Answer `--why-not`: reasons, the cost of forcing the item in, and break-even price, speed and latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fleetplan.fleet.inventory import Fleet, Offer
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Candidate, KnownBound
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.conflict.explain import ExplainedConflict, explain_conflict
from fleetplan.planner.questions.conflict.service_requirements import latency_requirements
from fleetplan.planner.questions.conflict.ways_out import least_steps
from fleetplan.planner.questions.fleet_question import FleetAnswer, FleetQuestion
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.reuse import bound_of
from fleetplan.planner.questions.why_not.assumed_offer import ASSUMED_OFFER, MOST_ASSUMED_PRICE, supplied
from fleetplan.planner.questions.why_not.break_even import (
    BreakEven,
    CostWithout,
    price_break_even,
    speed_break_even,
)
from fleetplan.planner.questions.why_not.reasons import Cause, Reason, standing_reasons
from fleetplan.planner.questions.why_not.subject import Subject, SubjectKind
from fleetplan.planner.search import CostThresholds, Deadline, Verdict


@dataclass(frozen=True, slots=True)
class LatencyNeeded:
    """Latency limit at which a service has its first configuration with the item.

    Attributes
    ----------
    service : str
        Name of the service.
    text : str
        Present and required limit.
    extra : ExtraCost or None
        Extra cost of a plan with the item under that limit; None without such a plan.
    """

    service: str
    text: str
    extra: ExtraCost | None


@dataclass(frozen=True, slots=True)
class ExtraCost:
    """Range of the extra cost of a plan with the item, from the optimality gaps. [USD]"""

    least_usd: float
    most_usd: float


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Answer on one item.

    Attributes
    ----------
    subject : Subject
        The item.
    used : tuple[Placement, ...]
        Placements with the item. If there are any, `extra` is the cost of excluding it.
    reasons : tuple[Reason, ...]
        Reasons against the item.
    extra : ExtraCost or None
        Extra cost of forcing the item in; None if impossible or undecided.
    forced : Plan or None
        Cheapest plan with the item (without it if the plan uses it).
    conflict : ExplainedConflict or None
        Conflict that forbids the item, if limits do.
    price : BreakEven or None
        Break-even ratio of its price.
    priced : tuple[Offer, ...]
        Offers whose prices the ratio scales.
    speed : BreakEven or None
        Break-even ratio of its rates.
    latency : tuple[LatencyNeeded, ...]
        Latency limits that would admit it.
    proven : bool
        Whether it is proven that every plan needs the used item.
    """

    subject: Subject
    used: tuple[Placement, ...]
    reasons: tuple[Reason, ...]
    extra: ExtraCost | None = None
    forced: Plan | None = None
    conflict: ExplainedConflict | None = None
    price: BreakEven | None = None
    priced: tuple[Offer, ...] = ()
    speed: BreakEven | None = None
    latency: tuple[LatencyNeeded, ...] = ()
    proven: bool = False


@dataclass(frozen=True, slots=True)
class AbsentItem:
    """Question why an item is not in a plan.

    Attributes
    ----------
    plan : Plan
        Plan that serves all demand at the lowest TCO.
    fleet : Fleet
        Fleet of the plan.
    subject : Subject
        The item.
    time_box_s : float
        Time limit for analysing a conflict with the limits. [s]
    """

    plan: Plan
    fleet: Fleet
    subject: Subject
    time_box_s: float


def absences(asked: Sequence[AbsentItem], resolver: Resolver) -> Iterator[WhyNot]:
    """Yield the answers to several questions, in their order."""
    return resolver.in_order(_answered, asked)


def _answered(resolver: Resolver, asked: AbsentItem) -> WhyNot:
    own = replace(resolver, keep=asked.subject.configurations)
    return why_not(asked.plan, asked.fleet, asked.subject, own, asked.time_box_s)


def why_not(plan: Plan, fleet: Fleet, subject: Subject, resolver: Resolver, time_box_s: float) -> WhyNot:
    """Answer why an item is not in a plan.

    Parameters
    ----------
    plan : Plan
        Plan that serves all demand at the lowest TCO.
    fleet : Fleet
        Fleet of the plan.
    subject : Subject
        The item.
    resolver : Resolver
        Solves changed fleets; keeps the configurations of the item.
    time_box_s : float
        Time limit for analysing a conflict with the limits. [s]
    """
    used = subject.used_in(plan)
    if used or _bought(subject, plan):
        return _worth(plan, fleet, subject, resolver, used)
    stage = _Stage(plan, supplied(fleet, subject), subject, resolver, time_box_s)
    return stage.answer()


def _bought(subject: Subject, plan: Plan) -> bool:
    return subject.kind is SubjectKind.OFFER and any(row.offer == subject.name for row in plan.purchases)


def _worth(
    plan: Plan, fleet: Fleet, subject: Subject, resolver: Resolver, used: tuple[Placement, ...]
) -> WhyNot:
    """Answer for an item in the plan: the cost of the fleet without it."""
    if subject.kind is SubjectKind.REGION:
        return WhyNot(subject, used, ())
    # Plans without it are also plans of the fleet, at the same cost.
    asked = FleetQuestion(fleet, begin=plan, bound=bound_of(plan, fleet))
    if subject.kind is SubjectKind.OFFER:
        asked = replace(asked, fleet=fleet_edits.maximum_set(fleet, subject.name, 0))
    else:
        asked = replace(asked, change=lambda candidate: None if subject.matches(candidate) else candidate)
    answer = resolver.answer(asked)
    extra = None
    if answer.plan is not None:
        extra = ExtraCost(max(0.0, answer.least_usd - plan.objective_usd), answer.most_usd - plan.bound_usd)
    return WhyNot(subject, used, (), extra, answer.plan, proven=answer.infeasible)


@dataclass(frozen=True, slots=True)
class _Stage:
    """State shared by the steps of an answer."""

    plan: Plan
    fleet: Fleet
    subject: Subject
    resolver: Resolver
    time_box_s: float

    @property
    def without(self) -> CostWithout:
        """Cost without the item: the present plan excludes it, so its cost and bound apply."""
        return CostWithout(self.plan.bound_usd, self.plan.objective_usd)

    @property
    def priced_offers(self) -> frozenset[str]:
        return self.subject.offers if self.subject.supplied else frozenset([ASSUMED_OFFER])

    def answer(self) -> WhyNot:
        candidates = self.resolver.candidates(self.fleet)
        reasons = tuple(standing_reasons(self.subject, self.fleet, candidates))
        found = WhyNot(self.subject, (), reasons)
        if not any(map(self.subject.matches, candidates.candidates)):
            return replace(found, latency=tuple(self.latency_needed(reasons)))
        self.resolver.say(f"solving with {self.subject.name}")
        # Plans with it are also plans of the fleet, unless the fleet only has it through an assumed offer.
        bound = bound_of(self.plan, self.fleet) if self.subject.supplied else None
        forced = self.force(self.fleet, bound=bound)
        if forced.plan is None:
            return self.forbidden(found, forced)
        extra = self.extra(forced)
        found = replace(
            found,
            reasons=(*reasons, Reason(Cause.PRICE, None, _price_reason(extra))),
            extra=extra,
            forced=forced.plan,
        )
        if self.priced_offers:
            offers = [offer for offer in self.fleet.offers if offer.name in self.priced_offers]
            found = replace(found, price=self.price(forced), priced=tuple(offers))
        pays = extra.most_usd < 0
        if self.subject.kind not in (SubjectKind.OFFER, SubjectKind.REGION) and not pays:
            self.resolver.say(f"searching for the break-even speed of {self.subject.name}")
            found = replace(found, speed=speed_break_even(self.at_speed, self.without, forced))
        return found

    def force(
        self,
        fleet: Fleet,
        ratio: float = 1.0,
        bound: KnownBound | None = None,
        thresholds: CostThresholds | None = None,
    ) -> FleetAnswer:
        """Return the cheapest plan with the item, with its rates scaled by a ratio."""
        forced = fleet_edits.with_policy(
            fleet, lambda policy: replace(policy, must_use=(self.subject.must_use,))
        )

        def faster(candidate: Candidate) -> Candidate:
            if not self.subject.matches(candidate):
                return candidate
            return replace(candidate, requests_per_s=tuple(rate * ratio for rate in candidate.requests_per_s))

        change = None if ratio == 1.0 else faster
        return self.resolver.answer(FleetQuestion(forced, change, self.plan, bound, thresholds))

    def at_speed(self, ratio: float, thresholds: CostThresholds | None) -> FleetAnswer:
        """Return the cheapest plan with the item at other rates, until the threshold is decided."""
        return self.force(self.fleet, ratio, thresholds=thresholds)

    def at_price(self, ratio: float, thresholds: CostThresholds | None) -> FleetAnswer:
        """Return the cheapest plan with the item at another price."""
        priced = fleet_edits.price_scaled(self.fleet, ratio, self.priced_offers)
        return self.force(priced, thresholds=thresholds)

    def extra(self, forced: FleetAnswer) -> ExtraCost:
        """Return the extra cost of forcing the item in; at least 0 if the fleet already has it."""
        least = 0.0 if self.subject.supplied else -float("inf")
        return ExtraCost(
            max(least, forced.least_usd - self.plan.objective_usd),
            max(least, forced.most_usd - self.plan.bound_usd),
        )

    def price(self, forced: FleetAnswer) -> BreakEven:
        """Return the break-even of the prices of its offers."""
        self.resolver.say(f"searching for the break-even price of {self.subject.name}")
        today = self.unit_prices(1.0)
        gift = self.unit_prices(0.0)

        def priced_usd(plan: Plan) -> float:
            periods = {period: q for q, period in enumerate(self.fleet.periods)}
            return sum(
                row.units
                * (
                    today[row.pool, row.offer][periods[row.period]]
                    - gift[row.pool, row.offer][periods[row.period]]
                )
                for row in plan.purchases
                if row.offer in self.priced_offers
            )

        highest = 1.0 if self.subject.supplied else MOST_ASSUMED_PRICE
        return price_break_even(self.at_price, priced_usd, self.without, forced, highest)

    def unit_prices(self, ratio: float) -> dict[tuple[str, str], tuple[float, ...]]:
        """Return the unit cost of each priced offer, by pool and offer, for each period of order. [USD]"""
        fleet = fleet_edits.price_scaled(self.fleet, ratio, self.priced_offers)
        return {
            (pool.name, acquisition.offer.name): acquisition.unit_usd
            for pool in self.resolver.problem(fleet)[1].pools
            for acquisition in pool.acquisitions
        }

    def forbidden(self, found: WhyNot, forced: FleetAnswer) -> WhyNot:
        """Complete the answer for an item that no plan can contain."""
        if not forced.infeasible:
            reason = Reason(Cause.LIMITS, None, f"undecided: {'; '.join(forced.reasons)}")
            return replace(found, reasons=(*found.reasons, reason))
        must = fleet_edits.with_policy(
            self.fleet, lambda policy: replace(policy, must_use=(self.subject.must_use,))
        )
        explained = explain_conflict(must, (), self.resolver, Deadline.after(self.time_box_s))
        text = "no plan can contain it: no supply, or the other requirements forbid it"
        if explained is not None and explained.core is not None:
            text = "no plan can contain it and also meet: " + "; ".join(
                each.name for each in explained.core.requirements
            )
        return replace(found, reasons=(*found.reasons, Reason(Cause.LIMITS, None, text)), conflict=explained)

    def latency_needed(self, reasons: tuple[Reason, ...]) -> Iterator[LatencyNeeded]:
        """Yield the latency limits at which a service first has a configuration with the item, each alone."""
        late = {reason.service for reason in reasons if reason.cause is Cause.LATENCY}
        for service in (each for each in self.fleet.services if each.name in late):
            for requirement in latency_requirements(service):
                steps = requirement.steps
                if steps is None or steps.most is None:
                    raise ValueError("a latency limit has steps")
                self.resolver.say(f"searching for the latency limit of {service.name} that admits it")

                def verdict(n: int, relax: object = steps.relax) -> Verdict:
                    assert callable(relax)
                    found = self.resolver.candidates(relax(self.fleet, n)).candidates
                    return Verdict.YES if any(map(self.subject.matches, found)) else Verdict.NO

                count, _ = least_steps(verdict, steps.most)
                if count is not None:
                    forced = self.force(steps.relax(self.fleet, count))
                    extra = None
                    if forced.plan is not None:
                        plan = self.plan
                        extra = ExtraCost(
                            forced.least_usd - plan.objective_usd, forced.most_usd - plan.bound_usd
                        )
                    yield LatencyNeeded(service.name, steps.text(count), extra)


def _price_reason(extra: ExtraCost) -> str:
    """Return the conclusion from the extra cost."""
    if extra.least_usd > 0:
        return "every plan that contains it costs more"
    if extra.most_usd < 0:
        return "it would lower the TCO at the assumed price"
    return "plans with and without it cost the same within the optimality gap"
