"""Figures as people read them."""

from __future__ import annotations

LEAST_WHOLE = 999.5
"""From this on figures have no fraction; three digits of it would be written as 1e+03."""

LEAST_USD = 0.005
"""What is less is shown as nothing. [USD]"""


def money(usd: float) -> str:
    """Dollars with three or four significant digits: $412, $8.61 k, -$12.3 M."""
    sign, size_usd = "-" if usd < 0 else "", abs(usd)
    for size, unit in ((1e9, " B"), (1e6, " M"), (1e3, " k")):
        if size_usd >= size:
            return f"{sign}${size_usd / size:.4g}{unit}"
    # Less than half a cent is the rounding of a sum.
    return f"{sign}${size_usd:.4g}" if size_usd >= LEAST_USD else "$0"


def figure(value: float, digits: int = 4) -> str:
    """A figure as people write it: thousands apart, and some significant digits below a thousand."""
    whole = value == round(value) or abs(value) >= LEAST_WHOLE
    return f"{value:,.0f}" if whole else f"{value:.{digits}g}"


PROVEN_GAP = 5e-5
"""Below this a gap in unmet demand is shown as none: HiGHS computes to a fraction of it."""


def how_sure_unmet(priority: int, gap: float) -> str:
    """Whether so much demand of a priority must stay unmet."""
    if gap < PROVEN_GAP:
        return f"priority {priority}: proven, no plan leaves less unmet"
    if gap > 1 - PROVEN_GAP:
        return f"priority {priority}: unproven, another plan may leave less unmet"
    return f"priority {priority}: another plan may leave up to {percent(gap)} less unmet"


def how_sure_all_unmet(gap: float) -> str:
    """The same of all priorities, with the largest of their gaps."""
    if gap < PROVEN_GAP:
        return "proven least"
    return "least unproven" if gap > 1 - PROVEN_GAP else f"another plan may leave up to {percent(gap)} less"


def percent(ratio: float) -> str:
    """A ratio in percent, small ones with more digits."""
    return f"{ratio:.2%}" if abs(ratio) < 0.1 else f"{ratio:.0%}"
