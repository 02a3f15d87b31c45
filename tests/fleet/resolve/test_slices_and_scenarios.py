"""Slices of the day, uncertain demand and offline work, from the fleet file to the resolved fleet."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fleet.resolve.resolved_demand import rates

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import DemandScenario, Fleet, Offline, Slice, Tidal
from fleetplan.fleet.inventory.demand import DEFAULT_PROBABILITY
from fleetplan.scenarios.load import load_fleet

FILE = """\
version: 1
horizon: {periods: [2027Q1], slices: [{name: day, hours: 14}, {name: night, hours: 10}]}
pools: [{name: p, hardware: H100-SXM, hosts: 1, owned: {capex_usd_per_host: 1}}]
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 100, output_tokens: 10}
    demand: 8
"""
NIGHT, DAY = ("night", None), ("day", None)


def loaded(tmp_path: Path, text: str) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return load_fleet(path)


def refused(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, text)
    return [f"{issue.key_path}: {issue.message}" for issue in caught.value.issues]


def test_a_day_without_slices_is_whole(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, FILE.replace(", slices: [{name: day, hours: 14}, {name: night, hours: 10}]", ""))
    assert (fleet.slices, fleet.demand_scenarios) == ((), ())
    assert list(fleet.services[0].demand.by_case) == [(None, None)]


def test_demand_is_the_same_all_day_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, FILE)
    assert fleet.slices == (Slice("day", 14.0), Slice("night", 10.0))
    assert rates(fleet.services[0], NIGHT) == rates(fleet.services[0], DAY) == [8.0]


@pytest.mark.parametrize(
    "demand",
    [
        "demand: 8\n    demand_by_slice: {night: 0.35}",
        "demand: {day: 8, night: 2.8}",
        "demand: {2027Q1: {day: 8, night: 2.8}}",
        "demand: {night: {2027Q1: 2.8}, day: 8}",
    ],
)
def test_demand_by_slice_is_a_ratio_or_a_level_of_the_demand(tmp_path: Path, demand: str) -> None:
    service = loaded(tmp_path, FILE.replace("demand: 8", demand)).services[0]
    assert list(service.demand.peak.values()) == [8.0]
    # Exactly the decimal that 0.35 times 8 is.
    assert (rates(service, DAY), rates(service, NIGHT)) == ([8.0], [2.8])


def test_the_peak_is_that_of_the_busiest_slice(tmp_path: Path) -> None:
    service = loaded(tmp_path, FILE.replace("demand: 8", "demand: {day: 2, night: 5}")).services[0]
    assert list(service.demand.peak.values()) == [5.0]
    assert rates(service, DAY) == [2.0]


def test_a_service_that_follows_has_the_day_of_its_leader(tmp_path: Path) -> None:
    text = FILE.replace("demand: 8", "demand: 8\n    demand_by_slice: {night: 0.5}") + (
        "  - {name: safety, model: llama3-8b, workload: {input_tokens: 100, output_tokens: 10}, "
        "follows: {service: chat, ratio: 2}}\n"
    )
    follower = loaded(tmp_path, text).services[1]
    assert (rates(follower, DAY), rates(follower, NIGHT)) == ([16.0], [8.0])


def test_estimates_alone_become_three_scenarios(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, FILE.replace("demand: 8", "demand: {low: 4, mid: 8, high: 12}"))
    assert [(each.name, each.probability) for each in fleet.demand_scenarios] == [
        ("low", 0.3),
        ("mid", 0.4),
        ("high", 0.3),
    ]
    assert sum(DEFAULT_PROBABILITY.values()) == pytest.approx(1.0)
    found = {name: rates(fleet.services[0], ("day", name)) for name in ("low", "mid", "high")}
    assert found == {"low": [4.0], "mid": [8.0], "high": [12.0]}
    assert fleet.demand_objective == "expected-cost"


def test_an_estimate_without_a_figure_takes_its_middle(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, FILE.replace("demand: 8", "demand: {mid: 8, high: 12}"))
    assert rates(fleet.services[0], ("day", "low")) == [8.0]


def test_an_estimate_of_one_figure_is_certain(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, FILE.replace("demand: 8", "demand: {low: 8, mid: 8, high: 8}"))
    assert fleet.demand_scenarios == ()
    assert fleet.warnings == ()


UNCERTAIN = """
uncertainty:
  objective: least-regret
  scenarios:
    - {name: base, probability: 0.6}
    - {name: boom, probability: 0.4, estimate: high, demand_ratio: {chat: 1.5}}
"""


def test_named_scenarios_take_a_figure_and_a_ratio(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, FILE.replace("demand: 8", "demand: {mid: 8, high: 10}") + UNCERTAIN)
    assert fleet.demand_objective == "least-regret"
    assert [each.name for each in fleet.demand_scenarios] == ["base", "boom"]
    assert rates(fleet.services[0], ("day", "base")) == [8.0]
    assert rates(fleet.services[0], ("day", "boom")) == [15.0]


def test_a_ratio_for_all_services_reaches_followers_once() -> None:
    scenario = DemandScenario("boom", 1.0, demand_ratio=2.0, ratio_by_service={"chat": 3.0})
    assert scenario.ratio_of("other", follows=False) == 2.0
    assert scenario.ratio_of("other", follows=True) == 1.0
    assert scenario.ratio_of("chat", follows=True) == 3.0


def test_scenarios_without_a_difference_are_warned_about(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, FILE + UNCERTAIN.replace(", demand_ratio: {chat: 1.5}", ""))
    assert fleet.demand_scenarios == ()
    assert fleet.warnings == ("uncertainty: has no effect: demand is the same in every scenario",)


def test_offline_work_arises_evenly_or_in_the_shape_of_the_day(tmp_path: Path) -> None:
    even = loaded(tmp_path, FILE.replace("demand: 8", "offline: {requests_per_day: 864000}")).services[0]
    assert even.offline == Offline(24.0)
    assert rates(even, DAY) == rates(even, NIGHT) == pytest.approx([10.0])
    shaped = "offline: {requests_per_day: 864000, deadline_hours: 6}\n    demand_by_slice: {night: 0}"
    by_day = loaded(tmp_path, FILE.replace("demand: 8", shaped)).services[0]
    assert by_day.offline == Offline(6.0)
    assert rates(by_day, DAY) == pytest.approx([864_000 / (14 * 3600)])
    assert rates(by_day, NIGHT) == [0.0]
    explicit = "offline: {requests_per_day: {day: 0, night: 36000}}"
    by_night = loaded(tmp_path, FILE.replace("demand: 8", explicit)).services[0]
    assert rates(by_night, NIGHT) == pytest.approx([1.0])


def test_tides_are_free_unless_the_policy_says_otherwise(tmp_path: Path) -> None:
    assert not loaded(tmp_path, FILE).policy.tidal.counts
    fleet = loaded(tmp_path, FILE + "policy: {tidal: {usd_per_accelerator: 0.1, max_share_per_pool: 0.5}}\n")
    assert fleet.policy.tidal == Tidal(0.1, 0.5)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("hours: 10", "hours: 9", "horizon.slices: the hours add up to 23, not 24"),
        ("hours: 10", "hours: 9.9", "horizon.slices.night.hours: must be a multiple of 0.25, not 9.9"),
        ("name: night", "name: day", "horizon.slices.day.name: the name 'day' is given twice in slices"),
        (
            "name: night",
            "name: 2027Q1",
            "horizon.slices.2027Q1.name: there is a period of the same name '2027Q1'",
        ),
        (
            "demand: 8",
            "demand: 8\n    demand_by_slice: {nite: 1}",
            "services.chat.demand_by_slice.nite: there is no slice 'nite'",
        ),
        (
            "demand: 8",
            "demand: {day: 8}\n    demand_by_slice: {night: 1}",
            "services.chat.demand.day: is given by slice, and demand_by_slice as well",
        ),
        (
            "demand: 8",
            "demand: 8\n    offline: {requests_per_day: 1}",
            "services.chat: needs exactly one of demand, follows, offline",
        ),
        (
            "demand: 8",
            "offline: {requests_per_day: 1}\n    demand_by_slice: {day: 0, night: 0}",
            "services.chat.offline.requests_per_day: arises in no slice: demand_by_slice is 0 in all of them",
        ),
        (
            "    demand: 8\n",
            "    demand: 8\nuncertainty: {scenarios: [{name: a, probability: 0.5}]}\n",
            "uncertainty.scenarios: the probabilities add up to 0.5, not 1",
        ),
        (
            "    demand: 8\n",
            "    demand: 8\nuncertainty: {scenarios: [{name: a, probability: 1, demand_ratio: {chta: 2}}]}\n",
            "uncertainty.scenarios.a.demand_ratio.chta: there is no service 'chta'",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in FILE
    (line,) = refused(tmp_path, FILE.replace(old, new, 1))
    assert line.startswith(expected)


def test_slices_are_needed_where_demand_has_a_shape(tmp_path: Path) -> None:
    text = FILE.replace(", slices: [{name: day, hours: 14}, {name: night, hours: 10}]", "")
    text = text.replace("demand: 8", "demand: 8\n    demand_by_slice: {night: 1}")
    assert refused(tmp_path, text) == ["services.chat.demand_by_slice: the day has no slices"]


def test_what_follows_offline_work_is_refused(tmp_path: Path) -> None:
    text = FILE.replace("demand: 8", "offline: {requests_per_day: 10}") + (
        "  - {name: safety, model: llama3-8b, workload: {input_tokens: 100, output_tokens: 10}, "
        "follows: {service: chat, ratio: 2}}\n"
    )
    assert refused(tmp_path, text) == [
        "services.safety.follows.service: chat is offline, so the time of its requests is unknown"
    ]
