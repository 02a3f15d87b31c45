"""What a comparison of a plan with counterfactuals found."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.questions.diff import COST_TOLERANCE_USD, PlanDiff


@dataclass(frozen=True, slots=True)
class Saving:
    """Saving of the plan against a counterfactual, with the range from both optimality gaps.

    Attributes
    ----------
    usd : float
        TCO of the counterfactual's plan less that of the plan. [USD]
    least_usd, most_usd : float
        The saving between the two optima lies between these: the counterfactual's bound less the plan, and
        the counterfactual's plan less the plan's bound. [USD]
    of_usd : float
        TCO of the counterfactual's plan. [USD]
    """

    usd: float
    least_usd: float
    most_usd: float
    of_usd: float

    @property
    def proven(self) -> bool:
        """Whether the gaps leave no doubt about its sign, or that there is none."""
        nothing = max(abs(self.least_usd), abs(self.most_usd)) < COST_TOLERANCE_USD
        return nothing or self.least_usd > 0 or self.most_usd < 0

    @property
    def nothing(self) -> bool:
        """Whether the two plans cost the same."""
        return abs(self.usd) < COST_TOLERANCE_USD

    def ratio(self, usd: float) -> float:
        """An amount as a share of the counterfactual's TCO."""
        return usd / self.of_usd if self.of_usd > 0 else 0.0


@dataclass(frozen=True, slots=True)
class OptionResult:
    """One option of a counterfactual after its solve.

    Attributes
    ----------
    label : str
        What sets the option apart.
    plan : Plan or None
        Its plan; None where there is none.
    infeasible : bool
        Whether it is proven that there is none.
    reasons : tuple[str, ...]
        What is short, or that the time was.
    dearer : bool
        Whether its search ended at a wider gap, as another option costs less for certain.
    """

    label: str
    plan: Plan | None
    infeasible: bool
    reasons: tuple[str, ...]
    dearer: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """A counterfactual beside the plan.

    Attributes
    ----------
    name, definition : str
        Of the counterfactual.
    trials : tuple[OptionResult, ...]
        Every option.
    chosen : OptionResult or None
        The cheapest option with a plan among those that leave the least unmet; None without one.
    bound_usd : float or None
        No plan of any option costs less; None where nothing is chosen. [USD]
    saving : Saving or None
        None where there is no plan, or the two leave different demand unmet.
    difference : PlanDiff or None
        From the counterfactual's plan to the plan.
    stranded_usd : float
        Fixed cost of hardware that stands in it and runs nothing. [USD]
    notes : tuple[str, ...]
        What keeps the two from being alike, such as another demand.
    """

    name: str
    definition: str
    trials: tuple[OptionResult, ...]
    chosen: OptionResult | None
    bound_usd: float | None
    saving: Saving | None
    difference: PlanDiff | None
    stranded_usd: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The plan, or the proof that there is none, and its counterfactuals."""

    outcome: Plan | Infeasible
    warnings: tuple[str, ...]
    rows: tuple[Compared, ...]
