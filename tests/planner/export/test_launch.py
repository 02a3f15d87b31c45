"""Launch commands: documented options, and degrees that match the replica."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest
from tests.parts import first_of
from tests.planner.export.launched_plans import deployment, facts, options_of, plan, stored_in_fp8
from tests.planner.export.started_replicas import with_phase
from tests.planner.whole_fleet import EVIL, FORMULA, whole_plan

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.parallelism import Parallelism, parse_parallelism
from fleetplan.planner.commands.export import FORMAT_NAMES
from fleetplan.planner.export.launch.commands import FRAMEWORKS, launch
from fleetplan.planner.export.launch.deployments import LaunchedGroup, NotLaunched, deployments, dns_name
from fleetplan.planner.export.launch.files import FORMATS, ExportOptions, export_launch
from fleetplan.planner.export.launch.replica import LOAD_BALANCERS, Launch
from fleetplan.planner.export.launch.tools import tools

CHECKPOINTS = {
    (weights, framework): {"int4": "a/small-AWQ", "bf16": "a/small"}.get(
        weights, "a/small-FP8" if framework == "trtllm" else None
    )
    for weights in ("fp8", "int4", "bf16")
    for framework in FRAMEWORKS
}
"""A checkpoint that stores the weights, or that a framework quantises to them."""

LAYOUTS = ("TP1", "TP8", "PP4-TP2", "DP4-EP4", "TP2DP4-TP8", "TP8DP2-TP8EP2", "PP2-TP4DP2-EP8", "TP8CP2-TP16")


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("weights", "kv", "chunk", "draft"),
    first_of((("fp8", "fp8", None, None), ("int4", "bf16", 2048, 3), ("bf16", "bf16", None, None)), 2),
)
def test_every_option_is_documented(
    framework: str, weights: str, kv: str, chunk: int | None, draft: int | None
) -> None:
    for label in LAYOUTS:
        for phase in ("prefill", "decode", "aggregated"):
            base = deployment(label, prompt_stages=frozenset())
            placed = replace(base, placement=base.placement.model_copy(update={"phase": phase}))
            _check_options(placed, framework, weights, kv, chunk, draft)


def _check_options(
    base: LaunchedGroup, framework: str, weights: str, kv: str, chunk: int | None, draft: int | None
) -> None:
    each = replace(
        base,
        variant=base.variant.model_copy(
            update={"weights": weights, "kv": kv, "checkpoint": CHECKPOINTS[weights, framework]}
        ),
        service=base.service.model_copy(
            update={
                "chunk_tokens": chunk,
                "draft_tokens": draft,
                "draft_method": None if draft is None else "eagle3",
                "draft_model": None if draft is None else "a/draft",
            }
        ),
    )
    started = launch(each, framework)
    if isinstance(started, NotLaunched):
        assert framework == "vllm"
        split_experts = each.layout.ep > 1 and each.layout.ffn_tp > 1
        stages_of_decode = each.layout.pp > 1 and each.placement.phase == "decode"
        assert split_experts or each.layout.cp > 1 or stages_of_decode
        return
    if started.hosts == 1:
        assert shlex.split(started.text) == [*started.words, *tools().framework(framework).listening]
    options = options_of(started)
    assert _accelerators(framework, options, each.layout) == each.layout.accelerators
    assert options.get("--quantization") == ("fp8" if weights == "fp8" and framework != "trtllm" else None)
    assert read_yaml(started.config_text or "{}") == dict(started.config)


def _accelerators(framework: str, options: dict[str, str], layout: Parallelism) -> int:
    """Accelerators that the options ask for, as each framework counts them."""

    def degree(name: str) -> int:
        return int(options.get(name, "1"))

    if framework == "vllm":
        ranks = degree("--tensor-parallel-size") * degree("--data-parallel-size")
        context = degree("--prefill-context-parallel-size")
        assert degree("--tensor-parallel-size") % degree("--decode-context-parallel-size") == 0
        return ranks * context * degree("--pipeline-parallel-size")
    if framework == "sglang":
        assert degree("--tp-size") % (degree("--attn-dp-size") * degree("--ep-size")) in {
            0,
            degree("--tp-size"),
        }
        return degree("--tp-size") * degree("--pp-size")
    return degree("--tp_size") * degree("--pp_size") * degree("--cp_size")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_experts_over_several_hosts_name_their_load_balancer(framework: str) -> None:
    def balancers(label: str) -> list[str]:
        started = launch(stored_in_fp8(label), framework)
        assert isinstance(started, Launch)
        return [note for note in started.notes if LOAD_BALANCERS[framework] in note]

    assert len(balancers("DP16-EP16")) == 1
    assert balancers("DP4-EP4") == []
    assert balancers("TP16") == []


def test_batches_are_counted_as_each_framework_does() -> None:
    each = with_phase(stored_in_fp8("PP2-TP2DP4-EP8", batch=16), "aggregated")
    limits = {
        "vllm": ("--max-num-seqs", 32),
        "sglang": ("--max-running-requests", 128),
        "trtllm": ("--max_batch_size", 16),
    }
    for framework, (option, sequences) in limits.items():
        started = launch(each, framework)
        assert isinstance(started, Launch)
        assert options_of(started)[option] == str(sequences)
    without = launch(replace(each, batch=None), "vllm")
    assert isinstance(without, Launch)
    assert "--max-num-seqs" not in options_of(without)


def test_the_rows_of_a_period_are_read_with_variant_layout_and_batch() -> None:
    found, refused = deployments(plan(), "2027Q2")
    assert refused == ()
    small = next(each for each in found if each.service.name == FORMULA)
    assert (small.variant.model, small.layout, small.batch) == (
        "a/small-AWQ",
        Parallelism(pp=2, tp=2, ffn_tp=2),
        16,
    )
    assert {each.placement.period for each in found} == {"2027Q2"}
    with pytest.raises(InputError, match="2027Q9"):
        deployments(plan(), "2027Q9")


def test_of_several_moments_the_one_with_most_replicas_counts() -> None:
    row = next(row for row in plan().placements if row.period == "2027Q1")
    day = row.model_copy(update={"slice": "day", "replicas": 9})
    night = row.model_copy(update={"slice": "night", "replicas": 4})
    found, _ = deployments(plan().model_copy(update={"placements": (night, day)}), None)
    assert [each.placement.replicas for each in found] == [9]
    started = launch(found[0], "vllm")
    assert isinstance(started, Launch)
    assert [note for note in started.notes if "by moment" in note] == [
        'replicas by moment: "night" 4, "day" 9; the largest number is set here: scale it'
    ]


def test_what_is_busiest_at_different_moments_may_ask_for_more_than_a_pool_has() -> None:
    whole = plan()
    row, other = [row for row in whole.placements if row.period == "2027Q1"][:2]
    use = next(each for each in whole.pools if each.period == "2027Q1" and each.pool == row.pool)
    day = row.model_copy(update={"slice": "day", "replicas": 3, "accelerators": 24})
    night = other.model_copy(update={"slice": "night", "replicas": 2, "accelerators": 16, "pool": row.pool})
    pools = tuple(use.model_copy(update={"slice": part, "accelerators": 32}) for part in ("day", "night"))
    sliced = whole.model_copy(update={"placements": (day, night), "pools": pools})
    script = export_launch(sliced, ExportOptions()).files["launch.sh"].decode()
    assert '"day" 3, "night" 0' in script
    assert f"# the replicas need 8 accelerators more than pool {json.dumps(row.pool)} has" in script
    # What is always there, and what has room, needs no note.
    alone = whole.model_copy(update={"placements": (row,)})
    assert "by moment" not in export_launch(alone, ExportOptions()).files["launch.sh"].decode()
    roomy = tuple(each.model_copy(update={"accelerators": 40}) for each in pools)
    sliced = whole.model_copy(update={"placements": (day, night), "pools": roomy})
    assert "the replicas need" not in export_launch(sliced, ExportOptions()).files["launch.sh"].decode()


def test_rates_of_ones_own_have_no_command() -> None:
    original = whole_plan().plan
    assert original is not None
    found, refused = deployments(original, None)
    assert found == ()
    assert all("brings its own rates" in each.reason for each in refused)
    assert len(refused) == len([row for row in original.placements if row.period == "2027Q1"])


def test_names_are_what_kubernetes_takes() -> None:
    assert dns_name("chat") == "chat"
    for text in (EVIL, FORMULA, "x" * 90, "", "us-east/b200-buy", "Chat"):
        name = dns_name(text)
        assert len(name) <= 40
        assert name.strip("-") == name
        assert all(letter.isascii() and (letter.isalnum() or letter == "-") for letter in name)
        assert name == name.lower()
    assert dns_name("Chat") != dns_name("chat")


def test_no_name_ends_the_comment_that_it_stands_in() -> None:
    broken = plan()
    rows = tuple(row.model_copy(update={"pool": "a\nrm -rf b"}) for row in broken.placements)
    text = export_launch(
        broken.model_copy(update={"placements": rows, "fleet": "f\nreboot"}), ExportOptions()
    )
    for line in text.files["launch.sh"].decode().splitlines():
        assert not line or line.startswith(("#", "vllm serve "))


def test_the_command_line_names_the_formats_that_there_are() -> None:
    assert tuple(FORMATS) == FORMAT_NAMES


def test_ranks_that_share_prompts_are_those_of_latent_attention_and_no_groups_of_experts() -> None:
    """Attention to grouped queries has no `supports_pcp` in vLLM 0.33: its engine does not start."""
    prefill = next(each for each in deployments(plan(), None)[0] if each.placement.phase == "prefill")
    shared = replace(prefill, layout=parse_parallelism("TP8CP4-TP8EP4"))
    refused = launch(shared, "vllm")
    assert isinstance(refused, NotLaunched)
    assert "only for latent attention (MLA)" in refused.reason
    started = launch(
        replace(shared, facts=shared.facts.model_copy(update={"latent_attention": True})), "vllm"
    )
    assert isinstance(started, Launch)
    found = options_of(started)
    assert (found["--tensor-parallel-size"], found["--prefill-context-parallel-size"]) == ("8", "4")
    assert "--enable-expert-parallel" not in found


@pytest.mark.parametrize(
    ("config", "layout", "batch"),
    [
        ("small/PP2-TP2 b8@20ms", "PP2-TP2", 8),
        ("small/PP2-TP2@12.5ms", "PP2-TP2", None),
        ("small/PP2-TP2", "PP2-TP2", None),
    ],
)
def test_configurations_for_other_regions_are_launched(config: str, layout: str, batch: int | None) -> None:
    whole = plan()
    rows = tuple(
        row.model_copy(update={"config": config}) if row.service == FORMULA else row
        for row in whole.placements
    )
    assert whole.inputs is not None
    launches = tuple(
        facts(*key) for key in {(row.service, row.phase, row.hardware, row.config) for row in rows}
    )
    whole = whole.model_copy(update={"inputs": whole.inputs.model_copy(update={"launches": launches})})
    found, refused = deployments(whole.model_copy(update={"placements": rows}), None)
    own = [each for each in found if each.service.name == FORMULA]
    assert own
    assert not refused
    assert {(each.layout.label, each.batch) for each in own} == {(layout, batch)}
    assert all(isinstance(launch(each, "sglang"), Launch) for each in own)
    # Each has a name of its own that Kubernetes takes.
    assert len({each.name for each in own}) == len(own)
