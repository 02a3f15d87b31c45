"""Cost of supply by docs/finance.md: capital and operating cost at present value."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tests.oracles.independent.facts import Facts, Offer, Owned, Stock

HOURS_PER_YEAR = 8760.0
MONTHS_PER_QUARTER = 3
MONTHS_PER_YEAR = 12
WATTS_PER_KW = 1000.0


@dataclass(frozen=True)
class Usd:
    """An amount by what may limit it: budgets on operating cost leave capital out."""

    capital: float = 0.0
    operating: float = 0.0

    def __add__(self, other: Usd) -> Usd:
        return Usd(self.capital + other.capital, self.operating + other.operating)

    def times(self, factor: float) -> Usd:
        """Multiply both kinds."""
        return Usd(self.capital * factor, self.operating * factor)

    @property
    def total(self) -> float:
        """Both kinds."""
        return self.capital + self.operating


NOTHING = Usd()


def hours(facts: Facts) -> float:
    """Return the hours of a period."""
    return HOURS_PER_YEAR * years(facts)


def years(facts: Facts) -> float:
    """Return the length of a period in years."""
    return facts.months / MONTHS_PER_YEAR


def worth_at_end(facts: Facts, period: int) -> float:
    """Return the present value of a dollar paid at the end of a period."""
    return float((1 + facts.discount_rate) ** (-(period + 1) * years(facts)))


def worth_at_start(facts: Facts, period: int) -> float:
    """Return the same of a dollar paid at the start of a period."""
    return float((1 + facts.discount_rate) ** (-period * years(facts)))


def _interest(facts: Facts) -> float:
    return (1 + facts.discount_rate) ** years(facts) - 1 if facts.annuity else 0.0


def books(owned: Owned, interest: float) -> tuple[list[float], list[float]]:
    """Return the value in the books at each age, and the charge of each period of the write-off. [USD]

    Between two ages the charges are even, and the books grow by interest less the charge. The charge is what
    brings them from one value to the next.
    """
    values, charges = [owned.capex_usd], []
    for (age, _), (later, share) in itertools.pairwise(owned.residual):
        steps = later - age
        growth = (1 + interest) ** steps
        paid_per_dollar = sum((1 + interest) ** n for n in range(steps))
        charge = (values[-1] * growth - owned.capex_usd * share) / paid_per_dollar
        for _ in range(steps):
            values.append(values[-1] * (1 + interest) - charge)
            charges.append(charge)
    return values, charges


def _charge(facts: Facts, owned: Owned, age: int) -> float:
    charges = books(owned, _interest(facts))[1]
    return charges[age] if 0 <= age < len(charges) else 0.0


def _value(facts: Facts, owned: Owned, age: int) -> float:
    values = books(owned, _interest(facts))[0]
    return values[min(max(age, 0), len(values) - 1)]


def _standing(
    facts: Facts, region: str, part: str, accelerators: int, *, included: bool, period: int
) -> float:
    """Hosting, network, software, staff and idle power of installed accelerators for a period. [USD]"""
    kind = facts.parts[part]
    kw = kind.all_in_w * accelerators / WATTS_PER_KW
    hosting = 0.0 if included else kw * facts.places[region].hosting_usd * facts.months
    per_host = sum(
        usd for name, usd in facts.host_usd.items() if not (included and name == "network")
    )  # fmt: skip
    place = facts.places[region]
    idle_kwh = kind.idle_w * accelerators / WATTS_PER_KW * hours(facts) * place.pue
    energy = 0.0 if included else idle_kwh * place.energy_usd[period]
    quarters = facts.months / MONTHS_PER_QUARTER
    return hosting + energy + per_host * quarters * accelerators / kind.per_host


def stock_usd(facts: Facts, stock: Stock, period: int) -> Usd:
    """Return what one existing unit costs in a period, whether used or not."""
    included = stock.energy_included
    running = _standing(facts, stock.region, stock.part, stock.unit, included=included, period=period)
    capital = 0.0
    if stock.owned is None:
        running += stock.rent_usd[period] * hours(facts) * stock.unit
    else:
        capital = _charge(facts, stock.owned, stock.ages[period])
        running += stock.owned.capex_usd * stock.owned.maintenance_ratio * years(facts)
    return Usd(capital, running).times(worth_at_end(facts, period))


def retired_usd(facts: Facts, stock: Stock, period: int) -> Usd:
    """Return what changes if a unit leaves at the start of a period: its books close, its sale is earned."""
    owned = stock.owned
    assert owned is not None
    resale = 0.0 if stock.resale_usd is None else stock.resale_usd[period]
    closing = (_value(facts, owned, stock.ages[period]) - resale) * worth_at_start(facts, period)
    saved = sum((stock_usd(facts, stock, q) for q in range(period, len(facts.periods))), NOTHING)
    return Usd(closing) + saved.times(-1.0)


def offer_usd(facts: Facts, offer: Offer, region: str, ordered: int) -> Usd:
    """Return what one unit costs over the horizon, by the period of its order, or first use for rent."""
    total = NOTHING
    for q in range(len(facts.periods)):
        if not stands(offer, ordered, q):
            continue
        included = offer.energy_included
        running = _standing(facts, region, offer.part, offer.unit, included=included, period=q)
        capital = 0.0
        if offer.owned is None:
            running += offer.rent_usd[ordered] * hours(facts) * offer.unit
        else:
            capital = _charge(facts, offer.owned, q - ordered - offer.lead)
            running += offer.owned.capex_usd * offer.owned.maintenance_ratio * years(facts)
        total += Usd(capital, running).times(worth_at_end(facts, q))
    return total


def stands(offer: Offer, ordered: int, period: int) -> bool:
    """Return whether a unit ordered (first used, for rent) in one period is there in another."""
    if offer.owned is None:
        return ordered <= period < ordered + offer.term
    return period >= ordered + offer.lead


def energy_usd_per_kw(facts: Facts, region: str, period: int) -> float:
    """Return the cost of a kW of IT load over a whole period at its present value. [USD/kW]"""
    place = facts.places[region]
    return place.energy_usd[period] * place.pue * hours(facts) * worth_at_end(facts, period)
