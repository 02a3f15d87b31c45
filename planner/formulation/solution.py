"""What a plan decides, in the raw values of a model's variables, and what it reaches of an objective."""

from __future__ import annotations

from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.objective.goals import Goal
from fleetplan.planner.formulation.variables import Variables


@dataclass(frozen=True, slots=True)
class Solution:
    """Raw values of a model's variables.

    Attributes
    ----------
    replicas, load, unmet, acquired, packed, retired, surviving_load, disaggregated, put_off : dict
        Values by the keys of `Variables`; zeros are left out.
    surviving_separate : dict
        The same.
    """

    replicas: dict[tuple[int, int, int], int]
    load: dict[tuple[int, int, int, int], int]
    unmet: dict[tuple[int, int], int]
    acquired: dict[tuple[int, int, int], int]
    packed: dict[tuple[int, int, tuple[int, ...]], int]
    retired: dict[tuple[int, int], int] = field(default_factory=dict)
    surviving_load: dict[tuple[str, int, int, int, int], int] = field(default_factory=dict)
    disaggregated: dict[tuple[int, int, int], int] = field(default_factory=dict)
    put_off: dict[tuple[int, int, int], int] = field(default_factory=dict)
    surviving_separate: dict[tuple[str, str, int, int, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reached:
    """What a plan reaches of an objective that comes before TCO.

    Attributes
    ----------
    goal : Goal
        The objective.
    value, bound : float
        Of the plan, and proven of all plans. [unit of the goal]
    """

    goal: Goal
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How far the plan may be from the best one, as a share of the larger figure."""
        return self.goal.gap(self.value, self.bound)


def values_of(variables: Variables, solver: cp_model.CpSolver) -> Solution:
    """The values of a model's variables in a solver's best solution."""
    return Solution(
        replicas={key: value for key, v in variables.replicas.items() if (value := solver.value(v))},
        load={key: value for key, v in variables.load.items() if (value := solver.value(v))},
        unmet={key: value for key, v in variables.unmet.items() if (value := solver.value(v))},
        acquired={key: value for key, v in variables.acquired.items() if (value := solver.value(v))},
        packed={key: value for key, v in variables.packed.items() if (value := solver.value(v))},
        retired={key: value for key, v in variables.retired.items() if (value := solver.value(v))},
        disaggregated={
            key: value for key, v in variables.disaggregated.items() if (value := solver.value(v))
        },
        put_off={key: value for key, v in variables.put_off.items() if (value := solver.value(v))},
        surviving_load={
            key: value for key, v in variables.surviving_load.items() if (value := solver.value(v))
        },
        surviving_separate={
            key: value for key, v in variables.surviving_separate.items() if (value := solver.value(v))
        },
    )
