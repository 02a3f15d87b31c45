"""A mixed-integer program by names, solved by HiGHS with tight tolerances, then with its integers fixed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import highspy
import numpy as np

FEASIBILITY = 1e-9
"""Largest violation of a row or a column; HiGHS takes nothing tighter than 1e-10."""

SEARCHES = ((1e-9, 1), (1e-7, 2))
"""Largest violation of integrality and random seed of each search. HiGHS 1.16 proves false optima where
limits are tight, with presolve and without (benchmarks/highs-presolve.md): one search confirms the other."""

RELATIVE_GAP = 1e-9
"""(objective - bound) / objective at which HiGHS may stop."""

CONTRADICTION = 1e-4
"""Share of a solution by which a bound above it is no rounding: such an answer says nothing."""

OBJECTIVE_SIZE = 1e4
"""Largest cost coefficient after scaling: HiGHS's absolute tolerances suit figures of this size."""


class UnsolvedError(Exception):
    """HiGHS found neither a solution nor a proof that there is none."""


@dataclass(frozen=True)
class Solved:
    """A solution and the bound on every other one, in the unit of the objective."""

    value: float
    bound: float
    columns: Mapping[Hashable, float]


Terms = dict[Hashable, float]


@dataclass
class Program:
    """Columns and rows; columns are made at their first mention in `column`."""

    index: dict[Hashable, int] = field(default_factory=dict)
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[str, dict[int, float], float, float]] = field(default_factory=list)

    def column(self, key: Hashable, *, upper: float = math.inf, whole: bool = False) -> None:
        """Add a column from 0 to `upper`."""
        if key in self.index:
            raise ValueError(f"column {key} exists")
        self.index[key] = len(self.upper)
        self.upper.append(upper)
        self.whole.append(whole)

    def row(self, name: str, terms: Mapping[Hashable, float], low: float, high: float) -> None:
        """Add low <= sum of terms <= high."""
        self.rows.append((name, {self.index[key]: value for key, value in terms.items() if value}, low, high))

    def at_most(self, name: str, terms: Mapping[Hashable, float], high: float) -> None:
        """Add sum of terms <= high."""
        self.row(name, terms, -math.inf, high)

    def minimise(
        self, objective: Mapping[Hashable, float], offset: float, time_limit_s: float
    ) -> Solved | None:
        """Return the least of an objective, or None if the rows allow nothing.

        Raises
        ------
        UnsolvedError
            If the time does not suffice for a solution or a proof.
        """
        if not self.upper:
            return (
                Solved(offset, offset, {}) if all(low <= 0 <= high for *_, low, high in self.rows) else None
            )
        found = [self._search(objective, offset, time_limit_s, *search) for search in SEARCHES]
        solved = [each for each in found if each is not None]
        if not solved:
            return None
        best = min(solved, key=lambda each: each.value)
        return replace(best, bound=min(each.bound for each in solved))

    def _search(
        self,
        objective: Mapping[Hashable, float],
        offset: float,
        time_limit_s: float,
        integrality: float,
        seed: int,
    ) -> Solved | None:
        scale = OBJECTIVE_SIZE / max((abs(value) for value in objective.values()), default=OBJECTIVE_SIZE)
        solver = self._solver(objective, scale, time_limit_s, integrality, seed)
        solver.run()
        status = solver.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return None
        info = solver.getInfo()
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            raise UnsolvedError(str(status))
        found = np.array(solver.getSolution().col_value)
        # A linear program has no bound of its own in `info`: its optimum is the bound.
        bound = info.mip_dual_bound if any(self.whole) else info.objective_function_value
        value, exact = self._with_integers_fixed(solver, found)
        if bound - value > CONTRADICTION * max(abs(value), 1.0):
            raise UnsolvedError(f"HiGHS states a bound of {bound!r} above its own solution {value!r}")
        columns = {key: exact[place] for key, place in self.index.items() if exact[place]}
        return Solved(value / scale + offset, bound / scale + offset, columns)

    def _solver(
        self,
        objective: Mapping[Hashable, float],
        scale: float,
        time_limit_s: float,
        integrality: float,
        seed: int,
    ) -> highspy.Highs:
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        options = {
            "output_flag": False,
            "threads": 1,
            "random_seed": seed,
            "presolve": "off",
            "time_limit": time_limit_s,
            "mip_rel_gap": RELATIVE_GAP,
            "mip_abs_gap": 0.0,
            "mip_feasibility_tolerance": integrality,
            "primal_feasibility_tolerance": FEASIBILITY,
            "dual_feasibility_tolerance": FEASIBILITY,
        }
        for name, value in options.items():
            if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise ValueError(f"HiGHS refuses {name} = {value}")
        solver.passModel(self._model(objective, scale))
        return solver

    def _model(self, objective: Mapping[Hashable, float], scale: float) -> highspy.HighsLp:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.upper), len(self.rows)
        cost = np.zeros(len(self.upper))
        for key, value in objective.items():
            cost[self.index[key]] = value * scale
        model.col_cost_ = cost
        model.col_lower_ = np.zeros(len(self.upper))
        model.col_upper_ = np.array(self.upper)
        # Rows of about one: HiGHS's tolerances are absolute.
        sizes = [max((abs(value) for value in terms.values()), default=1.0) for _, terms, _, _ in self.rows]
        model.row_lower_ = np.array(
            [low / size for (_, _, low, _), size in zip(self.rows, sizes, strict=True)]
        )
        model.row_upper_ = np.array([high / size for (*_, high), size in zip(self.rows, sizes, strict=True)])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.cumsum([0, *(len(terms) for _, terms, _, _ in self.rows)])
        model.a_matrix_.index_ = np.array(
            [place for _, terms, _, _ in self.rows for place in terms], dtype=int
        )
        model.a_matrix_.value_ = np.array(
            [
                v / size
                for (_, terms, _, _), size in zip(self.rows, sizes, strict=True)
                for v in terms.values()
            ]
        )
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[whole] for whole in self.whole]
        return model

    def _with_integers_fixed(self, solver: highspy.Highs, found: np.ndarray) -> tuple[float, np.ndarray]:
        """Round the integers, and solve what is left: a value that needs no tolerance on integers."""
        for place, whole in enumerate(self.whole):
            if whole:
                nearest = float(round(found[place]))
                solver.changeColBounds(place, nearest, nearest)
                solver.changeColIntegrality(place, highspy.HighsVarType.kContinuous)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise UnsolvedError("the solution does not hold once its integers are exact")
        return solver.getInfo().objective_function_value, np.array(solver.getSolution().col_value)
