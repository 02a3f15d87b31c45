"""Slots of recurrent states limit the candidates of services whose servers keep prefixes."""

from pathlib import Path

import pytest

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import build_candidates, service_evaluator, service_scheduling
from fleetplan.planner.candidates.assumptions import assumptions
from fleetplan.planner.problem import Phase
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
pools: [{{name: p, hardware: {hardware}, hosts: 8, rented: {{usd_per_accelerator_hour: 2}}}}]
services:
  - name: chat
    model: Qwen/Qwen3.6-27B
    framework: {framework}
    precision: {{weights: bf16, kv: bf16}}
    workload: {{input_tokens: 1000, output_tokens: 500, context_tokens: {context}}}
    demand: 1
"""


def fleet(folder: Path, context: int, framework: str = "sglang", hardware: str = "H200-SXM") -> Fleet:
    path = folder / f"{framework}-{hardware}-{context}.yaml"
    text = FLEET.format(context=context, framework=framework, hardware=hardware)
    path.write_text(text, encoding="utf-8")
    return load_fleet(str(path))


def largest_batches(found: Fleet) -> dict[Phase, int]:
    """Largest batch of a rank on one accelerator, by phase."""
    largest: dict[Phase, int] = {}
    for each in build_candidates(found, lambda _: None).candidates:
        if each.config.startswith("TP1 "):
            batch = max(batch or 0 for batch in each.batch)
            largest[each.phase] = max(largest.get(each.phase, 0), batch)
    return largest


def test_servers_that_keep_prefixes_run_fewer_requests(tmp_path: Path) -> None:
    """A prefix of one token takes no memory, but its cache does."""
    without, kept = (largest_batches(fleet(tmp_path, context)) for context in (1000, 1001))
    assert kept[Phase.AGGREGATED] < without[Phase.AGGREGATED] / 2
    # A server that generates alone has no prefix cache.
    assert kept[Phase.DECODE] == without[Phase.DECODE]
    others = largest_batches(fleet(tmp_path, 1001, "vllm"))
    assert others[Phase.AGGREGATED] > kept[Phase.AGGREGATED]


@pytest.mark.parametrize(
    ("hardware", "slots", "ahead"), [("H200-SXM", 5, 1.0), ("MI325X", 3, 0.0)], ids=["nvidia", "amd"]
)
def test_the_framework_s_default_of_the_part_holds(
    tmp_path: Path, hardware: str, slots: int, ahead: float
) -> None:
    found = fleet(tmp_path, 2000, hardware=hardware)
    (service,) = found.services
    evaluator = service_evaluator(found, service, found.hardware[hardware])
    assert evaluator.state_slots is not None
    assert evaluator.state_slots.slots == slots
    assert service_scheduling(service, evaluator).admission.iterations_ahead == ahead
    said = [text for text in assumptions(found, service) if "recurrent states" in text]
    assert len(said) == 1
    assert f"keeps {slots} recurrent states of Qwen/Qwen3.6-27B per request" in said[0]


@pytest.mark.parametrize(("context", "framework"), [(1000, "sglang"), (2000, "vllm"), (2000, "trtllm")])
def test_other_services_say_nothing_of_states(tmp_path: Path, context: int, framework: str) -> None:
    found = fleet(tmp_path, context, framework)
    (service,) = found.services
    assert not any("recurrent states" in text for text in assumptions(found, service))
    assert service_evaluator(found, service, found.hardware["H200-SXM"]).state_slots is None
