"""Exports launch the planned configuration or state why they cannot, by the tools' own rules."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.planner.export.launched_plans import deployment, options_of, plan, stored_in_fp8
from tests.planner.export.started_replicas import (
    on_hosts_of,
    reason,
    started,
    with_phase,
    with_service,
    with_variant,
)
from tests.planner.whole_fleet import EVIL

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.export.launch.deployments import LaunchedGroup, deployments
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.files import ExportOptions, export_launch
from fleetplan.planner.export.launch.llm_d import llm_d_values
from fleetplan.planner.export.launch.tensorrt_llm import engine_arguments
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.plan import Plan


def with_facts(each: LaunchedGroup, **changes: object) -> LaunchedGroup:
    return replace(each, facts=each.facts.model_copy(update=changes))


@pytest.mark.parametrize(
    ("room", "positions", "longest", "admitted"),
    [
        (10**6, 131072, 5000, 5008),  # the workload's longest request, in whole blocks
        (3333, 131072, 5000, 3328),  # what memory holds
        (10**6, 2048, 5000, 2048),  # what the config allows
    ],
)
def test_the_longest_sequence_is_that_of_workload_memory_and_config(
    room: int, positions: int, longest: int, admitted: int
) -> None:
    each = with_facts(
        deployment(), sequence_tokens=room, max_context_tokens=positions, longest_request_tokens=longest
    )
    assert options_of(started(each))["--max-model-len"] == str(admitted)
    assert options_of(started(each, "sglang"))["--context-length"] == str(admitted)
    assert engine_arguments(with_variant(each, checkpoint="a/b-FP8"))["max_seq_len"] == admitted


def test_prompts_are_computed_in_chunks_as_planned() -> None:
    each = with_phase(deployment(batch=16), "aggregated")
    whole = options_of(started(with_service(each, chunk_tokens=None)))
    assert "--no-enable-chunked-prefill" in whole
    # vLLM refuses a budget below the longest sequence, or below the number of sequences.
    assert int(whole["--max-num-batched-tokens"]) >= int(whole["--max-model-len"])
    chunked = options_of(started(with_service(each, chunk_tokens=2048)))
    assert "--enable-chunked-prefill" in chunked
    # Its budget counts the tokens that running sequences gain beside the chunk.
    assert int(chunked["--max-num-batched-tokens"]) == 2048 + 16


@pytest.mark.parametrize(("label", "tokens"), [("TP2", "2048"), ("DP4-EP4", "8192")])
def test_ranks_of_sglang_share_the_tokens_of_its_prompts(label: str, tokens: str) -> None:
    each = with_service(with_phase(deployment(label, batch=16), "aggregated"), chunk_tokens=2048)
    assert options_of(started(each, "sglang"))["--chunked-prefill-size"] == tokens


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
def test_a_draft_is_started_or_the_launch_refused(framework: str) -> None:
    each = with_service(with_variant(deployment(), checkpoint="a/b-FP8"), draft_tokens=3)
    assert "names no method and draft_model" in reason(each, framework)
    named = started(with_service(each, draft_method="eagle3", draft_model="a/draft"), framework)
    if framework == "vllm":
        config = json.loads(options_of(named)["--speculative-config"])
        assert config == {"method": "eagle3", "num_speculative_tokens": 3, "model": "a/draft"}
    elif framework == "sglang":
        found = options_of(named)
        assert found["--speculative-draft-model-path"] == "a/draft"
        assert (found["--speculative-num-steps"], found["--speculative-num-draft-tokens"]) == ("3", "4")
    else:
        assert named.config["speculative_config"] == {
            "decoding_type": "Eagle3",
            "max_draft_len": 3,
            "speculative_model": "a/draft",
        }
    # A prefill server drafts nothing.
    assert "draft" not in started(with_phase(each, "prefill"), framework).text


def test_techniques_without_an_option_in_the_command_are_notes() -> None:
    """A planned technique that the command cannot express is a note, such as sessions kept in DRAM."""
    each = with_phase(deployment("DP4-EP4"), "aggregated")
    assert not technique_said(each)
    wide = with_service(
        each,
        session_gib={"hbm": 8.0, "dram": 150.0, "flash": 400.0},
        offloaded={"weights": 0.25, "kv": 0.1},
        expert_overlap="two-batch",
    )
    notes = "\n".join(started(wide, "sglang").notes)
    for said in (
        "sessions are planned in 150 GiB of dram and 400 GiB of flash an accelerator: add --enable-hier",
        "25% of the weights are planned outside HBM: add --cpu-offload-gb",
        "10% of the running cache is planned outside HBM: no option of sglang is known for it",
        "two-batch overlap of experts is planned: add --enable-two-batch-overlap",
    ):
        assert said in notes
    assert "--kv-offloading-size" in "\n".join(started(wide).notes)
    # A decode server keeps no sessions.
    assert "sessions" not in "\n".join(started(with_phase(wide, "decode"), "sglang").notes)
    # What stays in HBM the prefix cache of the server keeps.
    assert not technique_said(with_service(each, session_gib={"hbm": 8.0}))


@pytest.mark.parametrize(
    ("vendor", "said"),
    [
        ("NVIDIA", "cap of 450 W, which nothing here sets: on each host sudo nvidia-smi -pl 450;"),
        ("AMD", "on each host sudo amd-smi set --gpu all --power-cap ppt0 450;"),
        ("Intel", "on each host set it;"),
    ],
)
def test_a_power_cap_is_a_note_with_its_command(vendor: str, said: str) -> None:
    """A capped part has a note with the command that sets the cap."""
    each = deployment()
    assert "power cap" not in "\n".join(started(each).notes)
    hardware = each.hardware.model_copy(update={"power_cap_w": 450.0, "vendor": vendor})
    assert said in "\n".join(started(replace(each, hardware=hardware)).notes)


def technique_said(each: LaunchedGroup) -> list[str]:
    return [note for note in started(each, "sglang").notes if "planned" in note]


def test_decode_context_parallelism_only_where_vllm_takes_it() -> None:
    each = with_phase(deployment("TP8CP2-TP16"), "aggregated")
    each = on_hosts_of(each, 16)
    assert options_of(started(each))["--decode-context-parallel-size"] == "2"
    # Of 16 key-value heads 16 ranks hold one each: nothing is left to split.
    assert "1 way at most" in reason(with_facts(each, kv_heads=16))
    assert "latent attention" in reason(with_phase(each, "decode"))
    latent = with_facts(with_phase(each, "decode"), latent_attention=True, kv_heads=None)
    assert "all 16 ranks or none" in reason(latent)


def test_a_dense_model_has_no_attention_data_parallelism_in_vllm() -> None:
    each = with_facts(deployment("DP4-TP4"), experts=False)
    assert "whole replicas" in reason(each)


@pytest.mark.parametrize(
    ("weights", "checkpoint", "stored", "quantised"),
    [
        ("fp8", None, None, "fp8"),  # BF16, quantised at load
        ("fp8", "a/b-FP8", None, None),
        ("fp8", None, "fp8_block", None),
        ("fp4", "nvidia/b-NVFP4", None, None),
        ("mxfp4", None, "mxfp4", None),
        ("int4", "my/own", None, None),  # one's own checkpoint, whose name says nothing
        # Published ones, whose configs say what they store.
        ("fp8", "meta-llama/Llama-3.3-70B-Instruct", None, "fp8"),
        ("fp8", "deepseek-ai/DeepSeek-R1-0528", None, None),
        ("mxfp4", "openai/gpt-oss-120b", None, None),
    ],
)
def test_the_checkpoint_has_the_weights_that_were_planned(
    weights: str, checkpoint: str | None, stored: str | None, quantised: str | None
) -> None:
    each = with_facts(
        with_variant(deployment(), weights=weights, checkpoint=checkpoint), stored_weights=stored
    )
    found = started(each)
    assert options_of(found).get("--quantization") == quantised
    assert found.words[2] == (checkpoint or each.variant.model)
    unsaid = any("must store weights in int4" in note for note in found.notes)
    assert unsaid == (checkpoint == "my/own")


@pytest.mark.parametrize(
    ("weights", "checkpoint", "stored"),
    [
        ("fp4", None, None),
        ("bf16", None, "fp8_block"),
        ("int8", "a/b-FP8", None),
        ("fp8-ffn", None, None),
        ("fp4", "meta-llama/Llama-3.3-70B-Instruct", None),
        ("bf16", "deepseek-ai/DeepSeek-R1-0528", None),
    ],
)
@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
def test_other_weights_are_refused(
    weights: str, checkpoint: str | None, stored: str | None, framework: str
) -> None:
    each = with_facts(
        with_variant(deployment(), weights=weights, checkpoint=checkpoint), stored_weights=stored
    )
    assert f"planned with weights in {weights}" in reason(each, framework)


def test_shapes_alone_are_no_checkpoint() -> None:
    assert "states only shapes" in reason(with_variant(deployment(), model="dense.json", checkpoint=""))
    named = started(with_variant(deployment(), model="dense.json", checkpoint="../weights"))
    assert named.words[2] == "../weights"


def test_prefill_of_tensorrt_llm_runs_without_the_overlap_scheduler() -> None:
    each = with_variant(deployment(), checkpoint="a/b-FP8")
    assert engine_arguments(with_phase(each, "prefill"))["disable_overlap_scheduler"] is True
    assert "disable_overlap_scheduler" not in engine_arguments(with_phase(each, "decode"))


def test_options_are_those_of_the_version_in_the_image() -> None:
    each = with_service(on_hosts_of(deployment("DP4-EP4"), 8), framework="sglang")
    assert "--attn-dp-size" in started(each, "sglang").words
    texts, _ = dynamo_graphs([each])
    (text,) = texts.values()
    assert text.startswith(f"# Dynamo {tools().dynamo.version}, whose image has sglang 0.5.21\n")
    container = read_yaml(text)["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0]
    assert {"--dp-size", "--enable-dp-attention"} <= set(container["args"])


def test_notes_and_versions_stand_in_every_export() -> None:
    for name in ("vllm", "sglang"):
        script = export_launch(plan(), ExportOptions(framework=name)).files["launch.sh"].decode()
        stated = [line for line in script.splitlines() if line.startswith("# Options of ")]
        (version,) = stated
        assert version.startswith(f"# Options of {name} {tools().framework(name).version}, ")
    (text, *_) = dynamo_graphs(deployments(plan(), None)[0])[0].values()
    assert "sequences of up to" in text.split("apiVersion")[0]
    (text, *_) = llm_d_values([deployment()])[0].values()
    assert "sequences of up to" in text.split("multinode")[0]


def test_files_say_what_they_lack() -> None:
    """A file names the sets of replicas that it does not deploy."""
    found, _ = deployments(plan(), None)
    one, other = (each for each in found if each.service.name == EVIL)
    amd = on_hosts_of(other, 8, "AMD")
    (text,) = dynamo_graphs([one, amd])[0].values()
    head = text.split("apiVersion")[0]
    assert f"not launched: {amd.placement.replicas} x " in head
    assert "Dynamo runs on NVIDIA parts" in head
    script = export_launch(without_heads(plan()), ExportOptions()).files["launch.sh"].decode()
    assert any(line.startswith("# not launched: ") for line in script.splitlines())


def without_heads(whole: Plan) -> Plan:
    """A plan of which one service has shapes alone, which are no checkpoint."""
    assert whole.inputs is not None
    services = tuple(
        each.model_copy(
            update={"variants": tuple(v.model_copy(update={"checkpoint": ""}) for v in each.variants)}
        )
        if each.name == EVIL
        else each
        for each in whole.inputs.services
    )
    return whole.model_copy(update={"inputs": whole.inputs.model_copy(update={"services": services})})


@pytest.mark.parametrize(
    ("framework", "option"),
    [("vllm", "--max-num-seqs"), ("sglang", "--max-running-requests"), ("trtllm", "--max_batch_size")],
)
def test_the_largest_batch_of_a_class_is_the_limit_and_all_are_told(framework: str, option: str) -> None:
    unknown = started(stored_in_fp8("TP2", batch=None), framework)
    assert option not in unknown.words
    assert any("a plan of this format does not state" in note and option in note for note in unknown.notes)
    own = started(replace(stored_in_fp8("TP2", batch=96), own_batches={"chat": 96, "code": 40}), framework)
    assert own.words == started(stored_in_fp8("TP2", batch=96), framework).words
    (note,) = (each for each in own.notes if "separate batch" in each)
    assert f'("chat" 96, "code" 40): {option} is the largest one' in note
    for batches in ({}, {"chat": 96, "code": 96}):
        one = started(replace(stored_in_fp8("TP2", batch=96), own_batches=batches), framework)
        assert not any("separate batch" in each for each in one.notes)


def shared_contexts(label: str, phase: str, model: str, **facts: object) -> LaunchedGroup:
    """Ranks that share contexts of latent attention, on hosts of eight."""
    each = with_phase(on_hosts_of(deployment(label, batch=4), 8), phase)
    each = with_variant(each, model=model, weights="fp8", checkpoint="nvidia/large-FP8")
    return with_facts(each, **({"latent_attention": True, "kv_heads": None} | facts))


def test_ranks_of_sglang_share_caches_in_decode_and_prompts_in_prefill() -> None:
    """`--attn-cp-size` alone shares nothing: SGLang 0.5.23 has one setting for prompts and one for caches."""
    found = options_of(started(shared_contexts("TP2CP4-EP8", "decode", "deepseek-v3"), "sglang"))
    assert (found["--tp-size"], found["--dcp-size"]) == ("8", "4")
    assert "--attn-cp-size" not in found
    found = options_of(started(shared_contexts("CP8-EP8", "prefill", "deepseek-v3"), "sglang"))
    assert (found["--tp-size"], found["--attn-cp-size"], found["--cp-strategy"]) == ("8", "8", "zigzag")
    assert {"--enable-prefill-cp"} <= set(found)
    assert "--dcp-size" not in found
    found = options_of(started(shared_contexts("CP8-EP8", "prefill", "deepseek-v3.2"), "sglang"))
    assert found["--cp-strategy"] == "interleave"


@pytest.mark.parametrize(
    ("label", "phase", "model", "why"),
    [
        # SGLang would turn the ranks of tensor parallelism into ones that share prompts.
        ("TP2CP4-EP8", "prefill", "deepseek-v3", "all 8 ranks of a stage"),
        ("CP8-TP8", "prefill", "deepseek-v3", "separate experts"),
        ("CP8-EP8", "decode", "deepseek-v3.2", "not split caches of sparse attention"),
    ],
)
def test_contexts_that_sglang_would_share_otherwise_are_refused(
    label: str, phase: str, model: str, why: str
) -> None:
    assert why in reason(shared_contexts(label, phase, model), "sglang")


def test_ranks_of_tensorrt_llm_that_share_a_cache_are_those_of_helix() -> None:
    engine = engine_arguments(shared_contexts("TP2CP4-EP8", "decode", "deepseek-v3"))
    assert engine["context_parallel_size"] == 4
    assert engine["cp_config"] == {"cp_type": "HELIX", "tokens_per_block": 32}
    cache = engine["kv_cache_config"]
    assert isinstance(cache, dict)
    assert cache["tokens_per_block"] == 32
    assert "cp_config" not in engine_arguments(shared_contexts("TP8-EP8", "decode", "deepseek-v3"))


def test_a_generation_server_of_tensorrt_llm_takes_memory_for_its_sequences_alone() -> None:
    decode = with_service(stored_in_fp8("TP2", batch=16), chunk_tokens=2048)
    assert engine_arguments(with_phase(decode, "decode"))["max_num_tokens"] == 16
    drafted = with_service(decode, draft_tokens=3, draft_method="mtp")
    assert engine_arguments(with_phase(drafted, "decode"))["max_num_tokens"] == 64
    assert engine_arguments(with_phase(decode, "prefill"))["max_num_tokens"] == 2048


def test_a_framework_is_started_on_parts_that_it_runs_on() -> None:
    each = on_hosts_of(stored_in_fp8("TP2"), 8, "AMD")
    assert reason(each, "trtllm") == "trtllm does not run on parts of AMD"
    assert options_of(started(each, "sglang"))["--tp-size"] == "2"
    on_tpus = on_hosts_of(stored_in_fp8("TP2"), 8, "Google")
    assert reason(on_tpus, "sglang") == "on TPUs, SGLang is SGLang-JAX, a server with options of its own"
