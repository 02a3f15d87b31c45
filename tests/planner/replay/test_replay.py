"""`plan replay` of a plan and its fleet: outcome, messages and plots."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.serving import Requests
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.plan import KvFlow, Placement, Plan
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.replay.deployment import served_places
from fleetplan.planner.replay.outcome import PlaceOutcome, ReplayOutcome
from fleetplan.planner.replay.plots import latency_figure, timeline_figure, write_replay_plots
from fleetplan.planner.replay.run import ReplayScope, replay_plan
from fleetplan.planner.replay.traffic import Arrivals, TrafficChoice, arriving
from fleetplan.planner.report.replay_console import print_replay
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet

from .conftest import FLEET, LENGTHS


def replayed(planned: tuple[Problem, Plan], **changes: object) -> ReplayOutcome:
    choice = TrafficChoice(**{"arrivals": Arrivals.AS_PLANNED, "duration_s": 60.0, **changes})  # type: ignore[arg-type]
    return replay_plan(*planned, choice, ReplayScope("2027Q1"))


def test_a_plan_for_percentiles_holds_them(planned: tuple[Problem, Plan]) -> None:
    found = replayed(planned)
    chat, split = found.places
    assert found.holds
    assert [check.share for check in chat.limits] == [0.95, 0.95]
    assert all(check.planned_under_load for check in chat.limits)
    assert all(check.kept_ratio >= 0.95 for check in chat.limits)
    assert chat.requests_per_s == pytest.approx(60, rel=0.1)
    # Limits on means of a service without traffic are told, and the plan did not promise them under load.
    assert [check.planned_under_load for check in split.limits] == [False, False]
    assert {group.phase for group in split.groups} == {"prefill", "decode"}


def test_overload_misses_what_was_planned(planned: tuple[Problem, Plan]) -> None:
    found = replayed(planned, load_ratio=2.0)
    assert not found.holds
    assert found.places[0].ttft.p95_ms > replayed(planned).places[0].ttft.p95_ms


def test_requests_of_the_warm_up_alone_are_none(planned: tuple[Problem, Plan]) -> None:
    """About one request a service: it may come in the first tenth, which does not count."""
    endings = set()
    for seed in range(60):
        try:
            found = replayed(planned, duration_s=1.0, load_ratio=1 / 60, seed=seed)
            assert all(place.requests for place in found.places)
            endings.add("replayed")
        except InputError as error:
            endings.add(error.issues[0].message.partition(" has ")[2])
    assert "no request within 1 s after the warm-up" in endings


def test_the_same_seed_gives_the_same_replay(planned: tuple[Problem, Plan]) -> None:
    first, second, other = replayed(planned), replayed(planned), replayed(planned, seed=2)
    assert first.places == second.places
    assert first.places != other.places


def test_bursts_lengthen_the_tail(planned: tuple[Problem, Plan]) -> None:
    poisson = replayed(planned, arrivals=Arrivals.POISSON)
    switching = replayed(planned, arrivals=Arrivals.REGIMES)
    assert switching.places[0].ttft.p99_ms > poisson.places[0].ttft.p99_ms


def test_a_trace_is_stretched_to_the_planned_rate(planned: tuple[Problem, Plan]) -> None:
    n = 500
    none = np.zeros(n, dtype=np.int64)
    trace = Requests(np.arange(n) * 3.0, none + 300, none, none + 40, session=np.arange(n) // 2)
    choice = TrafficChoice(Arrivals.TRACE, 60.0, trace=trace)
    place = served_places(planned[0], planned[1].placements)[0]
    found = arriving(place, choice, 0)
    assert len(found) / 60.0 == pytest.approx(60.0, rel=0.01)
    assert np.diff(found.arrival_ms).std() == pytest.approx(0.0, abs=1e-6)
    # A session of a later round is another one.
    _, counts = np.unique(found.session, return_counts=True)
    assert counts.max() == 2
    assert replayed(planned, arrivals=Arrivals.TRACE, trace=trace).requests > 0


def test_queues_and_use_over_time_are_told(planned: tuple[Problem, Plan]) -> None:
    place = replayed(planned).places[0]
    assert all(0 <= point.running <= point.places for point in place.timeline)
    busy = {group.label: group.busy_ratio for group in place.groups}
    for label, ratio in busy.items():
        points = [point for point in place.timeline if point.label == label]
        seen = np.mean([point.running / point.places for point in points])
        assert ratio == pytest.approx(seen, abs=0.1)


def test_requests_of_one_output_token_are_drawn_without_a_tpot(
    planned: tuple[Problem, Plan], tmp_path: Path
) -> None:
    found = replayed(planned)
    places = tuple(place.model_copy(update={"tpot": None, "limits": ()}) for place in found.places)
    drawn = write_replay_plots(found.model_copy(update={"places": places}), tmp_path)
    assert [path.name for path in drawn] == ["latencies.svg", "timeline.svg"]
    assert "no request has any" in figure_texts(latency_figure(found.model_copy(update={"places": places})))
    assert "no request has any" not in figure_texts(latency_figure(found))


@pytest.mark.filterwarnings("error")
def test_names_are_drawn_as_they_are(planned: tuple[Problem, Plan], tmp_path: Path) -> None:
    """No formula between dollars, no name hidden by an underscore, no warning of signs that a font lacks."""
    found = replayed(planned)
    names = ("_hidden", "a$b^{$", "\u4f1a\u8bdd")
    places = tuple(found.places[0].model_copy(update={"service": name}) for name in names)
    renamed = found.model_copy(update={"places": places})
    write_replay_plots(renamed, tmp_path)
    legend = timeline_figure(renamed).axes[0].get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == len(places)


def figure_texts(figure: Figure) -> list[str]:
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def test_one_service_may_be_chosen_and_must_exist(planned: tuple[Problem, Plan]) -> None:
    choice = TrafficChoice(Arrivals.POISSON, 20.0)
    assert [
        place.service
        for place in replay_plan(*planned, choice, ReplayScope("2027Q1", services=["split"])).places
    ] == ["split"]
    with pytest.raises(InputError, match="did you mean 'chat'"):
        replay_plan(*planned, choice, ReplayScope("2027Q1", services=["chart"]))
    with pytest.raises(InputError, match="no period '2027Q2'"):
        replay_plan(*planned, choice, ReplayScope("2027Q2"))
    with pytest.raises(InputError, match="no slice 'night'"):
        replay_plan(*planned, choice, ReplayScope("2027Q1", "night"))


def test_a_slice_of_the_day_may_be_chosen(planned: tuple[Problem, Plan]) -> None:
    problem, plan = planned
    rows = [row.model_copy(update={"slice": name}) for name in ("day", "night") for row in plan.placements]
    half = [
        row.model_copy(update={"requests_per_s_by_class": {"all": 1.0}}) for row in rows[len(rows) // 2 :]
    ]
    sliced = plan.model_copy(update={"placements": (*rows[: len(rows) // 2], *half)})
    choice = TrafficChoice(Arrivals.POISSON, 30.0)
    night = replay_plan(problem, sliced, choice, ReplayScope("2027Q1", "night"))
    assert night.slice == "night"
    assert night.requests < 0.2 * replay_plan(problem, sliced, choice, ReplayScope("2027Q1")).requests


LINKED = """\
kv_links: [{prefill: east, decode: west, gb_per_s: 100, added_ms: 70}]
policy: {kv_transfer: cross-region}
"""


def test_what_one_region_prefills_another_decodes(tmp_path: Path) -> None:
    """Replay passes requests from a region that prefills to one that decodes."""
    split = FLEET[FLEET.index("  - name: split") :].replace("demand: 30", "demand: {east: 30}")
    head = FLEET[: FLEET.index("  - name: chat")].replace("{east: {}}", "{east: {}, west: {}}")
    head = head.replace("name: rent,", "name: rent, regions: [east, west],")
    (tmp_path / "fleet.yaml").write_text(head + split + LINKED, encoding="utf-8")
    found = plan_fleet(load_fleet(tmp_path / "fleet.yaml"), SearchLimits(20.0, 1e-3, seed=1, workers=2))
    plan = found.outcome
    assert isinstance(plan, Plan)
    in_east = {"region": "east", "pool": "east/rent"}
    rows = {row.phase: row.model_copy(update=in_east) for row in plan.placements}
    moved = rows["decode"].model_copy(update={"region": "west", "pool": "west/rent"})
    flow = KvFlow(
        period="2027Q1", slice=None, scenario=None, service="split", request_class="all", origin="east",
        prefill_pool="east/rent", prefill_config=rows["prefill"].config, decode_pool="west/rent",
        decode_config=moved.config, requests_per_s=30.0,
    )  # fmt: skip

    def place(decode: Placement, flows: tuple[KvFlow, ...]) -> PlaceOutcome:
        changed = plan.model_copy(update={"placements": (rows["prefill"], decode), "kv_flows": flows})
        choice = TrafficChoice(Arrivals.POISSON, 20.0)
        return replay_plan(found.problem, changed, choice, ReplayScope("2027Q1")).places[0]

    here, apart = place(rows["decode"], ()), place(moved, (flow,))
    assert (here.region, apart.region) == ("east", "east + west")
    assert here.requests == apart.requests
    assert apart.ttft.mean_ms - here.ttft.mean_ms == pytest.approx(70, rel=0.02)


def test_a_plan_of_another_fleet_is_refused(planned: tuple[Problem, Plan]) -> None:
    problem, plan = planned
    row = plan.placements[0].model_copy(update={"hardware": "Z9"})
    other = plan.model_copy(update={"placements": (row,)})
    with pytest.raises(InputError, match="which is not in the fleet file"):
        replay_plan(
            build_problem(problem.fleet, ()),
            other,
            TrafficChoice(Arrivals.POISSON, 5.0),
            ReplayScope("2027Q1"),
        )


def test_few_requests_say_little_and_low_rates_are_not_zero(planned: tuple[Problem, Plan]) -> None:
    """Replay names services with fewer than 100 requests, and a rate of 0.0067 is not 0.0."""
    problem, plan = planned
    choice = TrafficChoice(Arrivals.POISSON, 20.0)
    outcome = replay_plan(problem, plan, choice, ReplayScope("2027Q1"))
    place = outcome.places[0]
    texts = []
    for requests, rate in ((2, 0.0067), (2000, 6.67)):
        seen = place.model_copy(update={"requests": requests, "requests_per_s": rate})
        stream = io.StringIO()
        print_replay(outcome.model_copy(update={"places": (seen,)}), Console(file=stream, width=200))
        texts.append(stream.getvalue())
    assert f"Fewer than 100 requests of {place.service} in {place.region} (2)" in texts[0]
    assert " 0.0067 " in texts[0]
    assert "Fewer than" not in texts[1]
    assert " 6.7 " in texts[1]


def test_requests_of_other_regions_take_their_way(tmp_path: Path) -> None:
    text = FLEET.replace("regions: {east: {}}", "regions: {east: {}, west: {round_trip_ms: {east: 90}}}")
    text = text.replace("per: accelerator,", "per: accelerator, regions: [east],")
    text = text.replace("    demand: 60", "    serve_from: {west: [east]}\n    demand: {east: 40, west: 20}")
    (tmp_path / "fleet.yaml").write_text(text.replace("demand: 30", "demand: {east: 30}"), encoding="utf-8")
    (tmp_path / "lengths.csv").write_text(LENGTHS, encoding="utf-8")
    fleet = load_fleet(tmp_path / "fleet.yaml")
    found = plan_fleet(fleet, SearchLimits(20.0, 1e-3, seed=1, workers=2))
    assert isinstance(found.outcome, Plan)
    problem, plan = found.problem, found.outcome
    assert any(row.requests_per_s_by_origin for row in plan.placements)
    outcome = replayed((problem, plan))
    assert outcome.holds
    (chat,) = (place for place in outcome.places if place.service == "chat")
    # The same replicas and requests, as if all came from their own region.
    rows = [row.model_copy(update={"requests_per_s_by_origin": {}}) for row in plan.placements]
    at_home = replayed((problem, plan.model_copy(update={"placements": tuple(rows)})))
    (near,) = (place for place in at_home.places if place.service == "chat")
    assert chat.ttft.mean_ms - near.ttft.mean_ms == pytest.approx(90 / 3, rel=0.1)
    assert chat.end_to_end.mean_ms - near.end_to_end.mean_ms == pytest.approx(90 / 3, rel=0.1)
    assert chat.tpot == near.tpot
