"""The story of a service prices hardware where the service can run."""

from __future__ import annotations

from tests.planner.builders import fleet, hardware, owned_pool, region, rent_offer, service
from tests.planner.questions.tiny import EXACT, engine_table

from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.service_history import story


def test_hardware_is_priced_in_the_regions_that_serve_the_service() -> None:
    """Hardware is priced where the service runs, not at pools of other regions."""
    rates = [("aggregated", name, 1, 10.0) for name in ("A", "B")]
    question = fleet(
        services=[service("chat", 50.0, engines=engine_table(rates), regions=["east"])],
        hardware=[hardware("A", 1), hardware("B", 1)],
        regions=[region("east"), region("west")],
        pools=[owned_pool("cheap", 9, 1_600.0, hardware="A", per_host=1, region="west")],
        offers=[
            rent_offer("rent", 2.0, hardware="A", regions=["east", "west"]),
            rent_offer("far", 1.0, hardware="B", regions=["west"]),
        ],
    )
    resolver = Resolver(EXACT)
    plan = resolver.solve(question).plan
    assert plan is not None
    one, other = story(plan, question, question.services[0], resolver).hardware
    assert (one.hardware, one.price) == ("A", "2 USD/h (offer rent, energy included)")
    assert [each.config for each in one.cheapest]
    assert (other.hardware, other.price, other.cheapest) == ("B", "no supply in east", ())
