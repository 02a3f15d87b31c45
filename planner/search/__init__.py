"""Search for a plan: return the best one found and a proven lower bound, or prove that no plan exists.

In: a `Problem` and `SearchLimits`. Out: a `SearchResult` with raw values. Entry points:
`budgets_kept.search`, `feasible.feasibility`, `shortage.find_shortages`, `uncertain_demand.search_scenarios`.
`solvers` solve one model as a whole, `blocks` decompose a large one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fleetplan.planner.search.budgets_kept import search as search
    from fleetplan.planner.search.deadline import NEVER as NEVER
    from fleetplan.planner.search.deadline import Deadline as Deadline
    from fleetplan.planner.search.extra_power import PowerLimit as PowerLimit
    from fleetplan.planner.search.extra_power import least_power as least_power
    from fleetplan.planner.search.feasible import Verdict as Verdict
    from fleetplan.planner.search.feasible import feasibility as feasibility
    from fleetplan.planner.search.program_cache import ProgramCache as ProgramCache
    from fleetplan.planner.search.result import CostThresholds as CostThresholds
    from fleetplan.planner.search.result import Progress as Progress
    from fleetplan.planner.search.result import SearchLimits as SearchLimits
    from fleetplan.planner.search.result import SearchResult as SearchResult
    from fleetplan.planner.search.result import SolveStatus as SolveStatus
    from fleetplan.planner.search.result import Watcher as Watcher
    from fleetplan.planner.search.result import default_workers as default_workers
    from fleetplan.planner.search.scenarios import LEAST_REGRET as LEAST_REGRET
    from fleetplan.planner.search.scenarios import Evaluation as Evaluation
    from fleetplan.planner.search.scenarios import unmet_requests_per_s as unmet_requests_per_s
    from fleetplan.planner.search.shortage import Shortages as Shortages
    from fleetplan.planner.search.shortage import find_shortages as find_shortages
    from fleetplan.planner.search.solvers.interrupt import Stop as Stop
    from fleetplan.planner.search.solvers.interrupt import run_interruptibly as run_interruptibly
    from fleetplan.planner.search.uncertain_demand import search_scenarios as search_scenarios
    from fleetplan.planner.search.work import TimeSpent as TimeSpent

_MODULE_OF: Final = {
    "NEVER": "deadline",
    "Deadline": "deadline",
    "Verdict": "feasible",
    "feasibility": "feasible",
    "PowerLimit": "extra_power",
    "least_power": "extra_power",
    "Progress": "result",
    "ProgramCache": "program_cache",
    "SearchLimits": "result",
    "SearchResult": "result",
    "Shortages": "shortage",
    "SolveStatus": "result",
    "CostThresholds": "result",
    "Watcher": "result",
    "default_workers": "result",
    "LEAST_REGRET": "scenarios",
    "Evaluation": "scenarios",
    "unmet_requests_per_s": "scenarios",
    "find_shortages": "shortage",
    "Stop": "solvers.interrupt",
    "run_interruptibly": "solvers.interrupt",
    "search": "budgets_kept",
    "search_scenarios": "uncertain_demand",
    "TimeSpent": "work",
}
"""Module of each public name, imported on first use: child processes of HiGHS import this package and must
not load OR-Tools."""


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
