"""Requests of one token have no time per output token: no limit on it, no figure of it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Final

from fleetplan.perfmodel.landscape import SearchSpace
from fleetplan.planner.candidates import build_candidates
from fleetplan.planner.landscape.answer import answer
from fleetplan.planner.landscape.plots import frontier_figure
from fleetplan.planner.landscape.question import question_of_service
from fleetplan.planner.problem import Candidate
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
