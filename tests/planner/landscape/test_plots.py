"""The heat map of a landscape: a panel for what runs, and letters that can be read."""

import pytest

from fleetplan.perfmodel.landscape import LatencyTarget, RequestShape, SearchSpace
from fleetplan.planner.drawing import PANELS_IN_A_ROW, new_figure
from fleetplan.planner.landscape.answer import answer
from fleetplan.planner.landscape.plots import heat_map_figure
from fleetplan.planner.landscape.question import LandscapeOptions, question_of_options


def titles(*hardware: str) -> list[str]:
    asked = LandscapeOptions(
        "llama3-70b",
        hardware,
        RequestShape(2000, 150),
        LatencyTarget(400.0, 40.0),
        ("fp8",),
        ("bf16",),
        "vllm",
        "rental_3y",
    )
    figure = heat_map_figure(answer(question_of_options(asked, SearchSpace(max_accelerators=4))))
    return [] if figure is None else [each.get_title() for each in figure.axes if each.get_title()]


def test_hardware_on_which_nothing_runs_has_no_panel() -> None:
    """Hardware without a configuration, such as A100 for FP8, has no empty panel."""
    assert titles("A100-SXM-80GB", "H100-SXM") == ["H100-SXM: decode requests/s per accelerator"]
    assert titles("A100-SXM-80GB") == []


@pytest.mark.parametrize(("panels", "rows"), [(1, 1), (3, 1), (4, 2), (7, 3)])
def test_panels_stand_in_rows(panels: int, rows: int) -> None:
    """Six panels form rows, so that each is legible."""
    figure, axes = new_figure(panels, 5.0, 4.0)
    assert (len(axes), len(figure.axes)) == (panels, panels)
    assert figure.get_size_inches().tolist() == [5.0 * min(panels, PANELS_IN_A_ROW), 4.0 * rows]
