"""Every configuration of a service, evaluated, with the reason that excludes each of the others.

In: an evaluator, request shapes, latency targets and a `SearchSpace`. Out: tables and Pareto frontiers of
configurations. Entry points: `service_landscape` (one table; `cached_landscape` keeps it on disk) and `sweep`
(all precisions, techniques and hardware of a question at once).
"""

from fleetplan.perfmodel.landscape.blocks import evaluate_block
from fleetplan.perfmodel.landscape.cache import WaitingLandscape, cached_landscape
from fleetplan.perfmodel.landscape.framework_layouts import FRAMEWORK_LAYOUTS
from fleetplan.perfmodel.landscape.framework_parts import may_be_of, runs_on
from fleetplan.perfmodel.landscape.frameworks import LayoutSetting, framework_problem, stages_problem
from fleetplan.perfmodel.landscape.grid import GridBlock, GridPlace, Option
from fleetplan.perfmodel.landscape.landscape import Landscape, LandscapeQuestion, service_landscape
from fleetplan.perfmodel.landscape.layout_problems import configuration_problem, layout_problem
from fleetplan.perfmodel.landscape.pareto import pareto_mask
from fleetplan.perfmodel.landscape.phases import AGGREGATED, DECODE, PREFILL, LatencyTarget, RequestShape
from fleetplan.perfmodel.landscape.points import Points, frontiers, points_of
from fleetplan.perfmodel.landscape.reasons import DATA_TYPE, REASON_TEXTS, REASONS
from fleetplan.perfmodel.landscape.search_space import (
    SearchSpace,
    search_layouts,
)
from fleetplan.perfmodel.landscape.sweeps import SweepResult, SweepSpace, SweptPart, sweep, tasks_of
from fleetplan.perfmodel.landscape.tables import configurations_of, evidence_table, pair_table, point_table

__all__ = [
    "AGGREGATED",
    "DATA_TYPE",
    "DECODE",
    "FRAMEWORK_LAYOUTS",
    "PREFILL",
    "REASONS",
    "REASON_TEXTS",
    "GridBlock",
    "GridPlace",
    "Landscape",
    "LandscapeQuestion",
    "LatencyTarget",
    "LayoutSetting",
    "Option",
    "Points",
    "RequestShape",
    "SearchSpace",
    "SweepResult",
    "SweepSpace",
    "SweptPart",
    "WaitingLandscape",
    "cached_landscape",
    "configuration_problem",
    "configurations_of",
    "evaluate_block",
    "evidence_table",
    "framework_problem",
    "frontiers",
    "layout_problem",
    "may_be_of",
    "pair_table",
    "pareto_mask",
    "point_table",
    "points_of",
    "runs_on",
    "search_layouts",
    "service_landscape",
    "stages_problem",
    "sweep",
    "tasks_of",
]
