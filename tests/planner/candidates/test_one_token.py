"""Requests of one token have no time per output token: no limit on it, no figure of it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.planner.questions.tiny import engine_table

from fleetplan.perfmodel.landscape import SearchSpace
from fleetplan.planner.candidates import build_candidates
from fleetplan.planner.landscape.answer import answer
from fleetplan.planner.landscape.frontier_points import frontier_points
from fleetplan.planner.landscape.plots import frontier_figure
from fleetplan.planner.landscape.question import question_of_service
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.questions.why_not.reasons import Cause, standing_reasons
from fleetplan.planner.questions.why_not.subject import read_subject
from fleetplan.scenarios.load import load_fleet

FLEET: Final = """\
version: 1
offers: [{{name: rent, hardware: MI300X, rent_usd_per_accelerator_hour: 2}}]
services:
  - name: safety
    model: llama3.1-8b
    workload: {{input_tokens: 500, output_tokens: {output_tokens}}}
    slo: {{ttft_ms: 300, tpot_ms: {tpot_ms}}}
    demand: 40
    search: {{max_accelerators: 2}}
"""


def fleet_file(folder: Path, output_tokens: int, tpot_ms: object) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(FLEET.format(output_tokens=output_tokens, tpot_ms=tpot_ms), encoding="utf-8")
    return path


def candidates(folder: Path, output_tokens: int, tpot_ms: object) -> list[Candidate]:
    fleet = load_fleet(fleet_file(folder, output_tokens, tpot_ms))
    return list(build_candidates(fleet, lambda _: None).candidates)


def test_a_limit_on_time_between_tokens_is_none_of_one_token(tmp_path: Path) -> None:
    limited, free = candidates(tmp_path, 1, 8), candidates(tmp_path, 1, "null")
    assert limited == free
    assert all(each.tpot_ms == (None,) for each in free)
    # It is one of two tokens.
    assert candidates(tmp_path, 2, 8) != candidates(tmp_path, 2, "null")
    assert any(each.tpot_ms != (None,) for each in candidates(tmp_path, 2, 8))


def test_what_no_request_has_is_not_drawn(tmp_path: Path) -> None:
    for output_tokens, panels in ((1, ["prefill"]), (2, ["prefill", "decode", "aggregated"])):
        fleet = load_fleet(fleet_file(tmp_path, output_tokens, "null"))
        found = answer(question_of_service(fleet, None, SearchSpace(max_accelerators=2)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figure = frontier_figure(found)
        assert figure is not None
        assert [axes.get_title() for axes in figure.axes] == panels


def test_prompts_of_one_token_leave_nothing_to_decode(tmp_path: Path) -> None:
    # A classifier had one replica in every region that decoded nothing.
    found = candidates(tmp_path, 1, "null")
    assert {each.phase for each in found} == {Phase.AGGREGATED}
    assert {each.phase for each in candidates(tmp_path, 2, "null")} == set(Phase)


def test_a_server_of_prompts_alone_is_one_of_prefill_that_hands_no_caches_on(
    tmp_path: Path,
) -> None:
    whole = {each.config: each for each in candidates(tmp_path, 1, "null")}
    for each in candidates(tmp_path, 2, "null"):
        if each.phase is Phase.PREFILL and each.config in whole:
            (server_ms,), (prefill_ms,) = whole[each.config].ttft_ms, each.ttft_ms
            assert server_ms is not None
            assert prefill_ms is not None
            assert server_ms < prefill_ms
            assert whole[each.config].requests_per_s >= each.requests_per_s


def test_frontiers_of_one_token_are_of_the_replicas_that_run(tmp_path: Path) -> None:
    """A service of one output token has a frontier of aggregated replicas only."""
    points = frontier_points(load_fleet(fleet_file(tmp_path, 1, "null")), ["safety"])
    assert points
    assert {each.phase for each in points} == {"aggregated"}
    assert all(each.latency_ms > 0 for each in points)
    longer = frontier_points(load_fleet(fleet_file(tmp_path, 2, "null")), ["safety"])
    assert {each.phase for each in longer} == set(Phase)


def test_why_nothing_is_decoded_is_said(tmp_path: Path) -> None:
    fleet = load_fleet(fleet_file(tmp_path, 1, "null"))
    subject = read_subject("disaggregated", fleet, 0.1)
    reasons = list(standing_reasons(subject, fleet, build_candidates(fleet, lambda _: None)))
    assert [each.text for each in reasons] == ["its requests of one token need no decode"]


def test_other_reasons_against_servers_of_one_token_are_their_own(tmp_path: Path) -> None:
    """ "Decodes nothing" is a reason against disaggregation only, and never against one's own rates."""
    fleet = load_fleet(fleet_file(tmp_path, 1, "null"))
    (chat,) = fleet.services
    hurried = replace(fleet, services=(replace(chat, ttft_ms=1e-3),))
    candidates_of_it = build_candidates(hurried, lambda _: None)
    reasons = list(standing_reasons(read_subject("aggregated", hurried, 0.1), hurried, candidates_of_it))
    assert Cause.LATENCY in {each.cause for each in reasons}
    assert not any("decode" in each.text for each in reasons)
    table = engine_table([("aggregated", chat.name, 1, 1.0)])
    table["hardware"] = sorted(fleet.hardware)[0]
    own = replace(fleet, services=(replace(chat, model=None, engines=table),))
    given = build_candidates(own, lambda _: None)
    texts = [each.text for each in standing_reasons(read_subject("disaggregated", own, 0.1), own, given)]
    assert texts
    assert not any("decode" in text and "token" in text for text in texts)


def test_the_data_types_that_hardware_lacks_are_named(tmp_path: Path) -> None:
    """A100 is excluded because it has no FP8, not by its data type alone."""
    path = fleet_file(tmp_path, 2, "null")
    text = path.read_text(encoding="utf-8").replace("MI300X", "A100-SXM-80GB")
    path.write_text(f"{text}    precision: {{weights: fp8, kv: fp8}}\n", encoding="utf-8")
    fleet = load_fleet(path)
    subject = read_subject("A100-SXM-80GB", fleet, 0.1)
    reasons = list(standing_reasons(subject, fleet, build_candidates(fleet, lambda _: None)))
    (lacking,) = [each for each in reasons if each.cause is Cause.DATA_TYPE]
    assert (
        "data type: the hardware has no matrix units for weights in fp8 and a KV cache in fp8" in lacking.text
    )
