"""Which of the plans that a search passes serves most: priority by priority, then the one it found last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, unmet_demand
from fleetplan.planner.search.unmet_prices import flat, rounding_of


class MostServed:
    """The plan that leaves the least unmet, of all that are noted.

    A search that weighs unmet demand against cost may give up what an earlier plan serves. Unmet demand
    comes before cost at any price, so the plan to go on with is the one that serves most.

    Parameters
    ----------
    planning : PlanningModel
        In which demand may stay unmet.
    priorities : sequence of int
        Of the services, highest first.
    first : sequence of int
        Values of all variables in the plan to begin with.

    Attributes
    ----------
    unmet : dict[int, FlatIntExpr]
        Unmet demand of the priorities that ask for something.
    last, best : list[int]
        Values of all variables in the plan that was noted last, and in the one that serves most.
    """

    def __init__(self, planning: PlanningModel, priorities: Sequence[int], first: Sequence[int]) -> None:
        unmet = {each: unmet_demand(planning.problem, planning.variables, each) for each in priorities}
        self.unmet: Mapping[int, cp_model.FlatIntExpr] = {
            priority: flat(each) for priority, each in unmet.items() if not isinstance(each, int)
        }
        self.last = self.best = list(first)

    def note(self, values: Sequence[int]) -> None:
        """Look at a plan that is better than the last one by unmet demand and cost together."""
        self.last = list(values)
        if self._serves_as_much(self.last):
            self.best = self.last

    def _serves_as_much(self, values: Sequence[int]) -> bool:
        """Whether a plan serves no less than the best, but for whole units, the highest priority first."""
        for unmet in self.unmet.values():
            more = value_of(unmet, values) - value_of(unmet, self.best)
            if abs(more) > rounding_of(unmet):
                return more < 0
        return True


def value_of(expression: cp_model.FlatIntExpr, values: Sequence[int]) -> int:
    """Value of a sum where the variables of its model have these values."""
    terms = zip(expression.vars, expression.coeffs, strict=True)
    return int(expression.offset) + sum(int(each) * int(values[variable.index]) for variable, each in terms)
