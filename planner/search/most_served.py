"""Choose, among the plans of one search, the plan that serves most: by priority, then the latest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, unmet_demand
from fleetplan.planner.search.unmet_prices import flat, rounding_of


class MostServed:
    """Keeps the plan with the least unmet demand of all plans noted.

    A search that weighs unmet demand against cost may drop demand that an earlier plan served. Unmet demand
    comes before cost at any price, so the search continues from the plan that serves most.

    Parameters
    ----------
    planning : PlanningModel
        Model in which demand may stay unmet.
    priorities : sequence of int
        Service priorities, highest first.
    first : sequence of int
        Values of all variables in the starting plan.

    Attributes
    ----------
    unmet : dict[int, FlatIntExpr]
        Unmet demand by priority, for priorities with demand.
    last, best : list[int]
        Values of all variables in the latest plan, and in the plan that serves most.
    """

    def __init__(self, planning: PlanningModel, priorities: Sequence[int], first: Sequence[int]) -> None:
        unmet = {each: unmet_demand(planning.problem, planning.variables, each) for each in priorities}
        self.unmet: Mapping[int, cp_model.FlatIntExpr] = {
            priority: flat(each) for priority, each in unmet.items() if not isinstance(each, int)
        }
        self.last = self.best = list(first)

    def note(self, values: Sequence[int]) -> None:
        """Note a plan that improves the weighted sum of unmet demand and cost."""
        self.last = list(values)
        if self._serves_as_much(self.last):
            self.best = self.last

    def _serves_as_much(self, values: Sequence[int]) -> bool:
        """Return whether a plan serves no less than the best, up to rounding, highest priority first."""
        for unmet in self.unmet.values():
            more = value_of(unmet, values) - value_of(unmet, self.best)
            if abs(more) > rounding_of(unmet):
                return more < 0
        return True


def value_of(expression: cp_model.FlatIntExpr, values: Sequence[int]) -> int:
    """Evaluate a linear expression at the values of all model variables."""
    terms = zip(expression.vars, expression.coeffs, strict=True)
    return int(expression.offset) + sum(int(each) * int(values[variable.index]) for variable, each in terms)
