"""Result of a comparison of a plan with counterfactuals."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.questions.diff import COST_TOLERANCE_USD, PlanDiff


@dataclass(frozen=True, slots=True)
class Saving:
    """Saving of the plan against a counterfactual, with its range from both optimality gaps.

    Attributes
    ----------
    usd : float
        TCO of the counterfactual's plan less that of the plan. [USD]
    least_usd, most_usd : float
        Range of the saving between the two optima: the counterfactual's bound less the plan, and the
        counterfactual's plan less the plan's bound. [USD]
    of_usd : float
        TCO of the counterfactual's plan. [USD]
    """

    usd: float
    least_usd: float
    most_usd: float
    of_usd: float

    @property
    def proven(self) -> bool:
        """Return whether the gaps leave no doubt about the sign of the saving, or about a saving of zero."""
        nothing = max(abs(self.least_usd), abs(self.most_usd)) < COST_TOLERANCE_USD
        return nothing or self.least_usd > 0 or self.most_usd < 0

    @property
    def nothing(self) -> bool:
        """Return whether the two plans cost the same."""
        return abs(self.usd) < COST_TOLERANCE_USD

    def ratio(self, usd: float) -> float:
        """Return an amount as a share of the counterfactual's TCO."""
        return usd / self.of_usd if self.of_usd > 0 else 0.0


@dataclass(frozen=True, slots=True)
class OptionResult:
    """One solved option of a counterfactual.

    Attributes
    ----------
    label : str
        Text that distinguishes the option.
    plan : Plan or None
        Plan of the option, or None.
    infeasible : bool
        Whether it is proven that no plan exists.
    reasons : tuple[str, ...]
        Shortages, or a note that the time limit was reached.
    dearer : bool
        Whether the search ended at a wider gap because another option is proven cheaper.
    """

    label: str
    plan: Plan | None
    infeasible: bool
    reasons: tuple[str, ...]
    dearer: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """A counterfactual compared with the plan.

    Attributes
    ----------
    name, definition : str
        Name and definition of the counterfactual.
    trials : tuple[OptionResult, ...]
        All options.
    chosen : OptionResult or None
        Cheapest option with a plan, among those with the least unmet demand; None without a plan.
    bound_usd : float or None
        Lower bound on the cost over all options; None if no option is chosen. [USD]
    saving : Saving or None
        None without a plan, or if the two leave different demand unmet.
    difference : PlanDiff or None
        Changes from the counterfactual's plan to the plan.
    stranded_usd : float
        Fixed cost of the counterfactual's hardware that runs nothing. [USD]
    notes : tuple[str, ...]
        Reasons why the two are not fully comparable, such as a different demand.
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
    """The plan (or the proof of infeasibility) and its counterfactuals."""

    outcome: Plan | Infeasible
    warnings: tuple[str, ...]
    rows: tuple[Compared, ...]
