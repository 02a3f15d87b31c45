"""Services that follow others, and the time of a request outside inference."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet, FollowedServices, OutsideLatency, Service
from fleetplan.scenarios.load import load_fleet

HEAD = """\
version: 1
horizon: {periods: [2027Q1, 2027Q2]}
regions: {east: {}, west: {}}
pools: [{name: p, region: east, hardware: H200-SXM, hosts: 2, rented: {usd_per_accelerator_hour: 2}}]
services:
"""
LEADER = """\
  - name: assistant
    model: llama3-8b
    workload:
      classes: {short: {share: 0.75, input_tokens: 100, output_tokens: 10},
                long: {share: 0.25, input_tokens: 900, output_tokens: 10}}
    slo: {ttft_ms: 400}
    demand: {east: {2027Q1: 100, 2027Q2: 140}, west: 20}
"""
FOLLOWER = """\
  - name: safety
    model: llama3-8b
    workload: {input_tokens: 100, output_tokens: 1}
"""


def loaded(folder: Path, services: str) -> Fleet:
    path = folder / "fleet.yaml"
    path.write_text(HEAD + services, encoding="utf-8")
    return load_fleet(path)


def refused(folder: Path, services: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loaded(folder, services)
    return [str(issue).split(": ", 1)[1] for issue in caught.value.issues]


def named(fleet: Fleet, name: str) -> Service:
    return next(service for service in fleet.services if service.name == name)


def test_demand_follows_region_period_and_class(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, LEADER + FOLLOWER + "    follows: {service: assistant, ratio: 1.2}\n")
    safety = named(fleet, "safety")
    assert safety.follows == FollowedServices(("assistant",), None)
    assert safety.demand.peak == pytest.approx(
        {
            ("east", "2027Q1", "all"): 120.0,
            ("east", "2027Q2", "all"): 168.0,
            ("west", "2027Q1", "all"): 24.0,
            ("west", "2027Q2", "all"): 24.0,
        }
    )


def test_a_ratio_by_class_leaves_the_others_out(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, LEADER + FOLLOWER + "    follows: {service: assistant, ratio: {long: 2}}\n")
    demand = named(fleet, "safety").demand.peak
    assert demand["east", "2027Q1", "all"] == pytest.approx(2 * 0.25 * 100)


def test_the_classes_of_the_follower_take_their_shares(tmp_path: Path) -> None:
    follower = """\
  - name: rewriting
    model: llama3-8b
    workload:
      classes: {brief: {share: 0.4, input_tokens: 50, output_tokens: 10},
                full: {share: 0.6, input_tokens: 500, output_tokens: 10}}
    follows: {service: assistant, ratio: 0.5}
"""
    demand = named(loaded(tmp_path, LEADER + follower), "rewriting").demand.peak
    assert demand["west", "2027Q2", "brief"] == pytest.approx(0.5 * 20 * 0.4)
    assert demand["west", "2027Q2", "full"] == pytest.approx(0.5 * 20 * 0.6)


def test_a_chain_is_followed_whatever_the_order_of_the_file(tmp_path: Path) -> None:
    reward = FOLLOWER.replace("safety", "reward") + "    follows: {service: safety, ratio: 3}\n"
    safety = FOLLOWER + "    follows: {service: assistant, ratio: 2}\n"
    fleet = loaded(tmp_path, reward + safety + LEADER)
    assert [service.name for service in fleet.services] == ["reward", "safety", "assistant"]
    assert named(fleet, "reward").demand.peak["west", "2027Q1", "all"] == pytest.approx(120.0)


def test_a_shared_budget_is_split_as_declared(tmp_path: Path) -> None:
    follows = "    follows: {{service: assistant, ratio: 1, ttft_share: {share}}}\n"
    second = FOLLOWER.replace("safety", "rewriting")
    fleet = loaded(
        tmp_path, LEADER + FOLLOWER + follows.format(share=0.25) + second + follows.format(share=0.1)
    )
    limits = {service.name: service.ttft_ms for service in fleet.services}
    assert limits == pytest.approx({"assistant": 260.0, "safety": 100.0, "rewriting": 40.0})


@pytest.mark.parametrize(
    ("services", "message"),
    [
        (
            LEADER + FOLLOWER + "    follows: {service: asistant, ratio: 1}\n",
            "services.safety.follows.service: there is no service 'asistant'",
        ),
        (
            FOLLOWER + "    follows: {service: safety, ratio: 1}\n",
            "services.safety.follows.service: follows in a circle: safety",
        ),
        (
            LEADER + FOLLOWER + "    demand: 4\n    follows: {service: assistant, ratio: 1}\n",
            "services.safety: needs exactly one of demand, follows, offline",
        ),
        (
            LEADER + FOLLOWER + "    follows: {service: assistant, ratio: {shrt: 1}}\n",
            "services.safety.follows.ratio.shrt: there is no class 'shrt'",
        ),
        (
            LEADER + FOLLOWER + "    follows: {service: assistant, ratio: -1}\n",
            "services.safety.follows.ratio: must be at least 0, not -1",
        ),
        (
            LEADER.replace("    slo: {ttft_ms: 400}\n", "")
            + FOLLOWER
            + "    follows: {service: assistant, ratio: 1, ttft_share: 0.5}\n",
            "services.safety.follows.ttft_share: assistant has no slo.ttft_ms to share",
        ),
        (
            LEADER
            + FOLLOWER
            + "    slo: {ttft_ms: 100}\n    follows: {service: assistant, ratio: 1, ttft_share: 0.5}\n",
            "services.safety.follows.ttft_share: cannot be combined with slo.ttft_ms of this service",
        ),
        (
            LEADER
            + FOLLOWER
            + "    outside_ms: {safety: 120}\n"
            + "    follows: {service: assistant, ratio: 1, ttft_share: 0.25}\n",
            "services.safety.follows.ttft_share: 120 ms outside leave nothing of 100 ms",
        ),
        (
            LEADER
            + "    outside_ms: {media_download: 150, network: 60}\n"
            + FOLLOWER
            + "    follows: {service: assistant, ratio: 1, ttft_share: 0.5}\n",
            "services.safety.follows.ttft_share: leaves 200 of 400 ms to assistant, which spends 210 ms "
            "outside inference",
        ),
        (
            LEADER
            + FOLLOWER
            + "    follows: {service: assistant, ratio: 1, ttft_share: 0.5}\n"
            + FOLLOWER.replace("safety", "reward")
            + "    follows: {service: safety, ratio: 1, ttft_share: 0.5}\n",
            "services.reward.follows.ttft_share: safety shares the limit of assistant itself",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(tmp_path: Path, services: str, message: str) -> None:
    (line,) = refused(tmp_path, services)
    assert line.startswith(message)


def test_classes_without_shares_cannot_be_followed(tmp_path: Path) -> None:
    follower = """\
  - name: rewriting
    model: llama3-8b
    workload:
      classes: {brief: {input_tokens: 50, output_tokens: 10}, full: {input_tokens: 500, output_tokens: 10}}
    follows: {service: assistant, ratio: 0.5}
"""
    (line,) = refused(tmp_path, LEADER + follower)
    assert "the split of these requests is missing: it needs shares of brief, full" in line


def test_what_follows_an_unknown_service_is_one_mistake(tmp_path: Path) -> None:
    first = FOLLOWER + "    follows: {service: asistant, ratio: 1}\n"
    second = FOLLOWER.replace("safety", "reward") + "    follows: {service: safety, ratio: 1}\n"
    assert len(refused(tmp_path, LEADER + first + second)) == 1


def test_what_follows_a_broken_service_is_no_second_mistake(tmp_path: Path) -> None:
    broken = LEADER.replace("    demand: {east: {2027Q1: 100, 2027Q2: 140}, west: 20}\n", "")
    lines = refused(tmp_path, broken + FOLLOWER + "    follows: {service: assistant, ratio: 1}\n")
    assert lines == ["services.assistant: needs exactly one of demand, follows, offline"]
    lines = refused(
        tmp_path,
        LEADER.replace("demand:", "demnd:") + FOLLOWER.replace("output_tokens: 1", "output_tokens: x"),
    )
    assert [line.split(": ")[0] for line in lines] == [
        "services.assistant.demnd",
        "services.safety.workload.output_tokens",
    ]


def test_times_outside_inference_add_up(tmp_path: Path) -> None:
    text = LEADER + "    outside_ms: {network: 20, load_balancing: 5, media_download: 40, safety: 15}\n"
    outside = named(loaded(tmp_path, text), "assistant").outside_ms
    assert outside == OutsideLatency(20.0, 5.0, 40.0, 15.0)
    assert outside.total_ms == 80.0
    short = named(loaded(tmp_path, LEADER + "    network_latency_ms: 20\n"), "assistant").outside_ms
    assert short == OutsideLatency(network_ms=20.0)


def test_the_network_stands_in_one_place(tmp_path: Path) -> None:
    text = LEADER + "    outside_ms: {network: 20}\n    network_latency_ms: 20\n"
    (line,) = refused(tmp_path, text)
    assert line.startswith("services.assistant.network_latency_ms: outside_ms already includes the network")


def test_times_outside_inference_leave_something_of_the_limit(tmp_path: Path) -> None:
    (line,) = refused(tmp_path, LEADER + "    outside_ms: {network: 300, safety: 100}\n")
    assert line == "services.assistant.outside_ms: 400 ms leave nothing of the TTFT limit of 400 ms"


AGENT = FOLLOWER.replace("safety", "agent") + "    demand: {east: 3, west: 1}\n"


def test_one_service_follows_several_and_their_requests_add_up(tmp_path: Path) -> None:
    both = "    follows:\n      - {service: assistant, ratio: 1.2}\n      - {service: agent, ratio: 2}\n"
    fleet = loaded(tmp_path, LEADER + AGENT + FOLLOWER + both)
    alone = loaded(tmp_path, LEADER + FOLLOWER + "    follows: {service: assistant, ratio: 1.2}\n")
    (one,) = [service for service in alone.services if service.name == "safety"]
    (safety,) = [service for service in fleet.services if service.name == "safety"]
    (agent,) = [service for service in fleet.services if service.name == "agent"]
    assert safety.follows == FollowedServices(("assistant", "agent"), None)
    assert sum(safety.demand.peak.values()) == pytest.approx(
        sum(one.demand.peak.values()) + 2 * sum(agent.demand.peak.values())
    )


@pytest.mark.parametrize(
    ("follows", "message"),
    [
        (
            "[{service: assistant, ratio: 1}, {service: agnt, ratio: 1}]",
            "services.safety.follows[1].service: there is no service 'agnt'",
        ),
        (
            "[{service: agent, ratio: 1}, {service: agent, ratio: 1}]",
            "services.safety.follows[1].service: the service 'agent' is given twice",
        ),
        (
            "[{service: assistant, ratio: 1, ttft_share: 0.2}, {service: agent, ratio: 1}]",
            "services.safety.follows[0].ttft_share: cannot be combined with several services",
        ),
        ("[]", "services.safety.follows"),
    ],
)
def test_what_cannot_be_followed_together_is_refused(tmp_path: Path, follows: str, message: str) -> None:
    (line, *more) = refused(tmp_path, LEADER + AGENT + FOLLOWER + f"    follows: {follows}\n")
    assert message in line
    assert not more
