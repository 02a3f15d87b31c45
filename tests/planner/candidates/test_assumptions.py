"""Assumptions of candidates are stated: vision towers without a cost, prefixes that are always cached."""

from pathlib import Path

from fleetplan.planner.candidates import build_candidates
from fleetplan.planner.candidates.assumptions import assumptions
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
pools: [{{name: p, hardware: MI300X, hosts: 2, rented: {{usd_per_accelerator_hour: 2}}}}]
services:
  - name: chat
    model: {model}
    precision: {{weights: fp8, kv: fp8}}
    workload: {{input_tokens: 2000, output_tokens: 100, context_tokens: {context}}}
    demand: 1
    techniques: {techniques}
"""
TIERS = "[{tier: hbm, gib_per_accelerator: 10}]"
KEPT = f"{{persistent_kv: {{hit_ratio: 0.8, sessions_per_accelerator: 20, tiers: {TIERS}}}}}"


def said(
    folder: Path, model: str = "llama3-8b", context: int = 2000, techniques: str = "{}"
) -> tuple[str, ...]:
    path = folder / "fleet.yaml"
    path.write_text(FLEET.format(model=model, context=context, techniques=techniques), encoding="utf-8")
    fleet = load_fleet(str(path))
    return assumptions(fleet, fleet.services[0])


def test_a_cached_prefix_says_how_often_it_is_there_and_what_it_takes(tmp_path: Path) -> None:
    (text,) = said(tmp_path, context=8192)
    # 6192 tokens of 32 layers, 8 heads, keys and values of 128, a byte each.
    gib = 6192 * 32 * 8 * 2 * 128 / 1024**3
    assert text.startswith(
        f"chat: 6,192 of 8,192 prompt tokens come from a cache ({gib:.2f} GiB per session)"
    )
    assert "hit ratio 100 %" in text
    (kept,) = said(tmp_path, context=8192, techniques=KEPT)
    assert "hit ratio 80%" in kept
    assert said(tmp_path) == ()
    # What all requests share is in memory once, and is there.
    assert said(tmp_path, context=8192, techniques="{shared_prefix_tokens: 6192}") == ()


def test_a_tower_that_is_not_priced_is_named(tmp_path: Path) -> None:
    (text,) = said(tmp_path, "llama4-scout")
    assert "the vision tower of" in text
    assert "are left out" in text


def test_a_tower_of_known_shapes_is_priced_where_images_are_said(tmp_path: Path) -> None:
    model = "Qwen/Qwen3-VL-32B-Instruct"
    (text,) = said(tmp_path, model)
    assert "prompts count as text tokens" in text
    assert said(tmp_path, model, techniques="{image_token_ratio: 0.5}") == ()


def test_a_name_of_several_parts_says_which_one_is_meant(tmp_path: Path) -> None:
    """A name that several parts share brings a warning that names the chosen part and the others."""
    path = tmp_path / "fleet.yaml"
    text = FLEET.format(model="llama3-8b", context=2000, techniques="{}").replace("MI300X", "GH200")
    path.write_text(
        text.replace("demand: 1", "demand: 1\n    search: {max_accelerators: 1}"), encoding="utf-8"
    )
    found = build_candidates(load_fleet(str(path)), lambda _: None)
    assert found.candidates
    (said_of_it,) = [text for text in found.warnings if text.startswith("GH200 is read as")]
    assert "96 GB" in said_of_it
    assert "144 GB" in said_of_it


def test_rates_of_an_engine_table_take_nothing_of_the_model_for_granted(tmp_path: Path) -> None:
    """A fleet whose rates are all given carries no warning about assumptions of the performance model."""
    (tmp_path / "engines.csv").write_text(
        "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,MI300X,1,one,2\n", "utf-8"
    )
    path = tmp_path / "fleet.yaml"
    head = FLEET.format(model="llama3-8b", context=2000, techniques="{}").partition("services:")[0]
    given = head + "services:\n  - {name: chat, engines: engines.csv, demand: 1}\n"
    path.write_text(given, encoding="utf-8")
    found = build_candidates(load_fleet(str(path)), lambda _: None)
    assert found.candidates
    assert found.warnings == ()


def test_errors_of_other_models_are_said_to_be_so(tmp_path: Path) -> None:
    (text,) = said(tmp_path, model="deepseek-v4-flash")
    assert text.startswith("chat: errors by hardware concern other models than deepseek-ai/DeepSeek-V4")
    assert "DeepSeek-V4-Pro 44% / 216% (13 rows)" in text
    assert not any("other models" in each for each in said(tmp_path, model="deepseek-r1"))


def test_models_whose_family_is_farther_off_than_others_say_so(tmp_path: Path) -> None:
    (text,) = said(tmp_path, model="Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert text.startswith("chat: the error against figures of users and vendors on models like Qwen/Qwen3-N")
    assert "23% / 29% (26 rows), that of all models 16% / 41%" in text
    assert said(tmp_path, model="qwen3-32b") == ()


def test_requests_longer_than_the_model_was_made_for_are_said(tmp_path: Path) -> None:
    texts = said(tmp_path, "Qwen/Qwen2.5-7B", context=140_000)
    assert texts[0].startswith(
        "chat: requests of 140,100 tokens (mean) exceed the 131,072 that the config of "
    )
    # A model whose config says nothing of a longest sequence, and one that takes them.
    assert said(tmp_path, "Qwen/Qwen2.5-7B") == ()
