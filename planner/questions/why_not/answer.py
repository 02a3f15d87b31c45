"""The whole answer to `--why-not`: reasons, the cost of forcing it in, and what would bring it in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fleetplan.fleet.inventory import Fleet, Offer
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Candidate, KnownBound
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.conflict.explain import Explained, explain_conflict
from fleetplan.planner.questions.conflict.service_requirements import latency_requirements
from fleetplan.planner.questions.conflict.ways_out import least_steps
from fleetplan.planner.questions.fleet_question import FleetAnswer, FleetQuestion
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.taken_over import bound_of
from fleetplan.planner.questions.why_not.assumed_offer import ASSUMED_OFFER, MOST_ASSUMED_PRICE, supplied
from fleetplan.planner.questions.why_not.break_even import (
    BreakEven,
    Without,
    price_break_even,
    speed_break_even,
)
from fleetplan.planner.questions.why_not.reasons import Cause, Reason, standing_reasons
from fleetplan.planner.questions.why_not.subject import Subject, SubjectKind
from fleetplan.planner.search import Deadline, Verdict, Verge


@dataclass(frozen=True, slots=True)
class LatencyNeeded:
    """What a service's latency limit would have to be for the first configuration of it.

    Attributes
    ----------
    service : str
        The service.
    text : str
        The limit now and then.
    extra : Extra or None
        What a plan with it under that limit costs more than the plan does today; None where there is none.
    """

    service: str
    text: str
    extra: Extra | None


@dataclass(frozen=True, slots=True)
class Extra:
    """What a plan with it costs more than one without, between two amounts that the gaps leave. [USD]"""

    least_usd: float
    most_usd: float


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The answer.

    Attributes
    ----------
    subject : Subject
        What was asked about.
    used : tuple[Placement, ...]
        Placements that are it: then it is in the plan, and `extra` is what doing without costs.
    reasons : tuple[Reason, ...]
        What stands against it.
    extra : Extra or None
        What forcing it in costs; None where that is impossible or undecided.
    forced : Plan or None
        The cheapest plan with it (without it where it is used).
    conflict : Explained or None
        What forbids it, where limits do.
    price : BreakEven or None
        Ratio of its price at which it belongs in.
    priced : tuple[Offer, ...]
        The offers whose prices that ratio scales.
    speed : BreakEven or None
        Ratio of its rates at which it belongs in.
    latency : tuple[LatencyNeeded, ...]
        Limits that it would need.
    proven : bool
        Whether it is proven that no plan does without what is used.
    """

    subject: Subject
    used: tuple[Placement, ...]
    reasons: tuple[Reason, ...]
    extra: Extra | None = None
    forced: Plan | None = None
    conflict: Explained | None = None
    price: BreakEven | None = None
    priced: tuple[Offer, ...] = ()
    speed: BreakEven | None = None
    latency: tuple[LatencyNeeded, ...] = ()
    proven: bool = False


@dataclass(frozen=True, slots=True)
class Absence:
    """Something of which it is asked why it is not in a plan.

    Attributes
    ----------
    plan : Plan
        The plan, which serves everything at the least TCO.
    fleet : Fleet
        What it was made for.
    subject : Subject
        What is asked about.
    time_box_s : float
        For a conflict with the limits, if there is one. [s]
    """

    plan: Plan
    fleet: Fleet
    subject: Subject
    time_box_s: float


def absences(asked: Sequence[Absence], resolver: Resolver) -> Iterator[WhyNot]:
    """Yield the answers to several questions, in their order."""
    return resolver.in_order(_answered, asked)


def _answered(resolver: Resolver, asked: Absence) -> WhyNot:
    own = replace(resolver, keep=asked.subject.configurations)
    return why_not(asked.plan, asked.fleet, asked.subject, own, asked.time_box_s)


def why_not(plan: Plan, fleet: Fleet, subject: Subject, resolver: Resolver, time_box_s: float) -> WhyNot:
    """Answer why something is not in a plan.

    Parameters
    ----------
    plan : Plan
        The plan, which serves everything at the least TCO.
    fleet : Fleet
        What it was made for.
    subject : Subject
        What is asked about.
    resolver : Resolver
        Solves; keeps the configurations of the subject.
    time_box_s : float
        For a conflict with the limits, if there is one. [s]
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
    """It is in the plan: what the fleet would cost without it."""
    if subject.kind is SubjectKind.REGION:
        return WhyNot(subject, used, ())
    # Plans without it are among those of the fleet, at the same cost.
    asked = FleetQuestion(fleet, begin=plan, bound=bound_of(plan, fleet))
    if subject.kind is SubjectKind.OFFER:
        asked = replace(asked, fleet=fleet_edits.maximum_set(fleet, subject.name, 0))
    else:
        asked = replace(asked, change=lambda candidate: None if subject.matches(candidate) else candidate)
    answer = resolver.answer(asked)
    extra = None
    if answer.plan is not None:
        extra = Extra(max(0.0, answer.least_usd - plan.objective_usd), answer.most_usd - plan.bound_usd)
    return WhyNot(subject, used, (), extra, answer.plan, proven=answer.infeasible)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Everything that the steps of an answer share."""

    plan: Plan
    fleet: Fleet
    subject: Subject
    resolver: Resolver
    time_box_s: float

    @property
    def without(self) -> Without:
        """The plan does without it, so no fleet without it needs to cost more; none at all costs less."""
        return Without(self.plan.bound_usd, self.plan.objective_usd)

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
        # Plans with it are among those of the fleet, unless the fleet has it by an offer that is assumed.
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
        verge: Verge | None = None,
    ) -> FleetAnswer:
        """The cheapest plan with it, its rates times a ratio."""
        forced = fleet_edits.with_policy(
            fleet, lambda policy: replace(policy, must_use=(self.subject.must_use,))
        )

        def faster(candidate: Candidate) -> Candidate:
            if not self.subject.matches(candidate):
                return candidate
            return replace(candidate, requests_per_s=tuple(rate * ratio for rate in candidate.requests_per_s))

        change = None if ratio == 1.0 else faster
        return self.resolver.answer(FleetQuestion(forced, change, self.plan, bound, verge))

    def at_speed(self, ratio: float, verge: Verge | None) -> FleetAnswer:
        """The same, as far as it tells whether it belongs in."""
        return self.force(self.fleet, ratio, verge=verge)

    def at_price(self, ratio: float, verge: Verge | None) -> FleetAnswer:
        """The cheapest plan with it at another price."""
        priced = fleet_edits.price_scaled(self.fleet, ratio, self.priced_offers)
        return self.force(priced, verge=verge)

    def extra(self, forced: FleetAnswer) -> Extra:
        """What a plan with it costs more; what the fleet has already, no plan with it can save."""
        least = 0.0 if self.subject.supplied else -float("inf")
        return Extra(
            max(least, forced.least_usd - self.plan.objective_usd),
            max(least, forced.most_usd - self.plan.bound_usd),
        )

    def price(self, forced: FleetAnswer) -> BreakEven:
        """Break-even of the prices of the offers that bring it."""
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
        """Cost of a unit of each priced offer, by pool and offer, by the period of its order. [USD]"""
        fleet = fleet_edits.price_scaled(self.fleet, ratio, self.priced_offers)
        return {
            (pool.name, acquisition.offer.name): acquisition.unit_usd
            for pool in self.resolver.problem(fleet)[1].pools
            for acquisition in pool.acquisitions
        }

    def forbidden(self, found: WhyNot, forced: FleetAnswer) -> WhyNot:
        """No plan has it: what forbids that."""
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
        """Latency limits at which a service has its first configuration of it, one limit at a time."""
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
                        extra = Extra(forced.least_usd - plan.objective_usd, forced.most_usd - plan.bound_usd)
                    yield LatencyNeeded(service.name, steps.text(count), extra)


def _price_reason(extra: Extra) -> str:
    """What the extra cost says."""
    if extra.least_usd > 0:
        return "every plan that contains it costs more"
    if extra.most_usd < 0:
        return "it would lower the TCO at the assumed price"
    return "plans with and without it cost the same within the optimality gap"
