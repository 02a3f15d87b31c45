"""Launch commands and manifests: options that are documented, degrees that make up the replica."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from tests.parts import first_of
from tests.planner.whole_fleet import EVIL, FORMULA, whole_plan

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.parallelism import Parallelism, parse_parallelism
from fleetplan.planner.commands.export import FORMAT_NAMES
from fleetplan.planner.export.launch.commands import FRAMEWORKS, launch
from fleetplan.planner.export.launch.deployments import LaunchedGroup, NotLaunched, deployments, dns_name
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.files import FORMATS, ExportOptions, export_launch
from fleetplan.planner.export.launch.llm_d import llm_d_values
from fleetplan.planner.export.launch.replica import FOLLOWER, LOAD_BALANCERS, Launch
from fleetplan.planner.export.launch.supply import node_pools
from fleetplan.planner.export.launch.terraform import purchase_changes
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import ClassInput, HardwareInput, LaunchInput, VariantInput

DOCUMENTED = read_yaml((Path(__file__).parent / "documented_options.yaml").read_text(encoding="utf-8"))

CHECKPOINTS = {
    (weights, framework): {"int4": "a/small-AWQ", "bf16": "a/small"}.get(
        weights, "a/small-FP8" if framework == "trtllm" else None
    )
    for weights in ("fp8", "int4", "bf16")
    for framework in FRAMEWORKS
}
"""A checkpoint that stores the weights, or that a framework quantises to them."""

LAYOUTS = ("TP1", "TP8", "PP4-TP2", "DP4-EP4", "TP2DP4-TP8", "TP8DP2-TP8EP2", "PP2-TP4DP2-EP8", "TP8CP2-TP16")


def plan() -> Plan:
    """The plan of the whole fleet, its services with models and layouts."""
    found = whole_plan().plan
    assert found is not None
    assert found.inputs is not None
    variants = {
        EVIL: (VariantInput(name="", model="meta-llama/Llama-3.1-70B", weights="fp8", kv="fp8"),),
        FORMULA: (
            VariantInput(name="large", model="a/large", weights="bf16", kv="bf16"),
            VariantInput(name="small", model="a/small-AWQ", weights="int4", kv="bf16"),
        ),
    }
    services = tuple(
        each.model_copy(update={"variants": variants[each.name], "classes": with_lengths(each.classes)})
        for each in found.inputs.services
    )
    hardware = tuple(each.model_copy(update={"vendor": "NVIDIA"}) for each in found.inputs.hardware)
    rows = tuple(
        row.model_copy(update={"config": "TP1 b8" if row.service == EVIL else "small/PP2-TP2 b16"})
        for row in found.placements
    )
    launches = tuple(
        facts(*key) for key in {(row.service, row.phase, row.hardware, row.config) for row in rows}
    )
    update = {"services": services, "hardware": hardware, "launches": launches}
    inputs = found.inputs.model_copy(update=update)
    return found.model_copy(update={"inputs": inputs, "placements": rows})


def with_lengths(classes: tuple[ClassInput, ...]) -> tuple[ClassInput, ...]:
    return tuple(each.model_copy(update={"input_tokens": 1000, "output_tokens": 200}) for each in classes)


def facts(service: str, phase: str, hardware: str, config: str) -> LaunchInput:
    """A model with 64 query heads in groups of eight, experts, and memory for 20,000 tokens."""
    return LaunchInput(
        service=service,
        phase=phase,
        hardware=hardware,
        config=config,
        stored_weights=None,
        heads=64,
        kv_heads=8,
        latent_attention=False,
        experts=True,
        max_context_tokens=131072,
        sequence_tokens=20000,
        longest_request_tokens=None,
    )


def deployment(label: str = "TP2", **changes: object) -> LaunchedGroup:
    found, _ = deployments(plan(), None)
    first = next(each for each in found if each.placement.phase == "decode")
    return replace(first, layout=parse_parallelism(label), **changes)  # type: ignore[arg-type]


def stored_in_fp8(label: str, **changes: object) -> LaunchedGroup:
    """A deployment whose checkpoint every framework takes as it is."""
    each = deployment(label, **changes)
    return replace(each, variant=each.variant.model_copy(update={"checkpoint": "nvidia/large-FP8"}))


def options_of(started: Launch) -> dict[str, str]:
    """Options with their values, every one documented; '' for a flag."""
    table = DOCUMENTED[started.framework]
    words = list(started.words) if started.on_host is None else list(started.on_host(FOLLOWER))
    words += tools().framework(started.framework).listening
    words = words[words.index(table["command"][0]) :]
    assert words[: len(table["command"])] == table["command"]
    words = words[len(table["command"]) :]
    if not words[0].startswith("--"):
        words = words[1:]
    found = {}
    while words:
        option = words.pop(0)
        assert option in table["options"], option
        assert option not in found
        rule = table["options"][option]
        found[option] = "" if rule.get("flag") else words.pop(0)
        if "values" in rule:
            assert found[option] in rule["values"], option
    assert set(started.config) <= set(table.get("config", ()))
    return found


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
            base = deployment(label)
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
        assert split_experts or each.layout.cp > 1
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
    each = stored_in_fp8("PP2-TP2DP4-EP8", batch=16)
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


def test_a_dynamo_graph_holds_the_phases_of_a_service_in_a_region() -> None:
    found, _ = deployments(plan(), None)
    wide = [
        replace(each, layout=Parallelism(tp=8, ffn_tp=8)) if each.placement.phase == "decode" else each
        for each in found
    ]
    texts, refused = dynamo_graphs(wide)
    assert refused == ()
    graphs = {name: read_yaml(text) for name, text in texts.items()}
    graph = next(each for each in graphs.values() if len(each["spec"]["components"]) == 3)
    assert (graph["apiVersion"], graph["kind"]) == ("nvidia.com/v1beta1", "DynamoGraphDeployment")
    parts = {each["type"]: each for each in graph["spec"]["components"]}
    assert set(parts) == {"frontend", "prefill", "decode"}
    decode = parts["decode"]
    rows = {each.placement.phase: each.placement for each in wide if each.service.name == EVIL}
    assert decode["replicas"] == rows["decode"].replicas
    # Eight ranks are two hosts of four.
    assert decode["multinode"] == {"nodeCount": 2}
    assert len(graph["metadata"]["name"]) + 2 * len(decode["name"]) + len("-ldr") <= 45
    container = decode["podTemplate"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "4"}}
    assert container["args"][:2] == ["--model", "meta-llama/Llama-3.1-70B"]
    assert container["args"][-2:] == ["--disaggregation-mode", "decode"]
    assert "multinode" not in parts["prefill"]


def test_dynamo_takes_the_engine_arguments_of_tensorrt_llm_and_refuses_other_vendors() -> None:
    found, _ = deployments(plan(), None)
    first = replace(
        found[0],
        service=found[0].service.model_copy(update={"framework": "trtllm"}),
        variant=found[0].variant.model_copy(update={"checkpoint": "nvidia/Llama-3.1-70B-FP8"}),
    )
    amd = replace(found[1], hardware=HardwareInput(name="MI300X", accelerators_per_host=8, vendor="AMD"))
    texts, refused = dynamo_graphs([first, amd])
    assert [each.reason for each in refused] == ["Dynamo runs on NVIDIA parts"]
    (text,) = texts.values()
    # The operator starts the ranks, and its frontend finds both phases.
    assert first.placement.phase != "aggregated"
    assert "trtllm-serve disaggregated" not in text
    graph = read_yaml(text)
    arguments = graph["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0]["args"]
    engine = json.loads(arguments[arguments.index("--override-engine-args") + 1])
    assert engine["tensor_parallel_size"] == first.layout.tp
    assert engine["kv_cache_config"]["dtype"] == "fp8"


def test_llm_d_values_have_one_role_each() -> None:
    found, _ = deployments(plan(), None)
    texts, refused = llm_d_values(found)
    assert refused == ()
    assert len(texts) == len(found)
    for each in found:
        values = read_yaml(texts[f"{each.name}.llm-d.yaml"])
        role = "prefill" if each.placement.phase == "prefill" else "decode"
        other = "decode" if role == "prefill" else "prefill"
        assert (values[role]["create"], values[other]["create"]) == (True, False)
        assert values[role]["replicas"] == each.placement.replicas
        container = values[role]["containers"][0]
        assert container["command"] == ["vllm", "serve"]
        assert container["args"][0] == each.variant.model


def test_node_pools_are_whole_hosts() -> None:
    table = node_pools(plan())
    row = table[(table["pool"] == "old") & (table["period"] == "2027Q2")].iloc[0]
    assert (row["nodes"], row["accelerators"], row["nodes_needed"]) == (3, 12, 3)
    assert row["resource"] == "nvidia.com/gpu"
    rented = table[(table["pool"] == "here/more") & (table["period"] == "2027Q2")].iloc[0]
    assert (rented["accelerators"], rented["nodes"]) == (6, 2)


def test_purchases_are_changes_with_what_comes_and_goes() -> None:
    document = json.loads(purchase_changes(plan()))
    changes = {change["address"]: change["change"] for change in document["resource_changes"]}
    assert len(changes) == len(plan().purchases) + len(plan().retirements)
    created = [each for each in changes.values() if each["actions"] == ["create"]]
    assert sum(each["after"]["usd"] for each in created) == pytest.approx(
        sum(row.usd for row in plan().purchases)
    )
    old, aged = [each for each in changes.values() if each["actions"] == ["delete"]]
    assert (old["before"]["hosts"], old["after"]) == (2, None)
    assert (aged["before"]["hosts"], aged["before"]["period"]) == (1, "2027Q2")


def test_the_command_line_names_the_formats_that_there_are() -> None:
    assert tuple(FORMATS) == FORMAT_NAMES


def test_ranks_that_share_prompts_are_those_of_latent_attention_and_no_groups_of_experts() -> None:
    """Attention to grouped queries has no `supports_pcp` in vLLM 0.33: its engine does not start."""
    prefill = next(each for each in deployments(plan(), None)[0] if each.placement.phase == "prefill")
    shared = replace(prefill, layout=parse_parallelism("TP8CP4-TP8EP4"))
    refused = launch(shared, "vllm")
    assert isinstance(refused, NotLaunched)
    assert "for latent attention (MLA) alone" in refused.reason
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
