import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.predict import NUMBER_COLUMNS, OUTPUT_COLUMNS, predict, read_cases

BASE: dict[str, object] = {
    "case_id": "a",
    "model": "llama3-8b",
    "hardware": "H100-SXM",
    "weights": "bf16",
    "mode": "decode",
    "tp": 1,
    "input_tokens": 1000,
    "output_tokens": 100,
    "batch": 8,
}


def cases(*changes: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame([{**BASE, "case_id": f"case-{at}", **change} for at, change in enumerate(changes)])


def run(*changes: dict[str, object]) -> pd.DataFrame:
    return predict(cases(*changes), Path())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "lama3-8b"}, "no such model in the catalogue.*did you mean 'llama3-8b'"),
        ({"hardware": "H10-SXM"}, "hardware: 'H10-SXM' is not in the catalogue.*did you mean 'H100-SXM'"),
        ({"hardware": None}, "hardware: missing"),
        ({"weights": "fp9"}, "weights: 'fp9' is not known; allowed: bf16, fp8"),
        ({"weights": "fp4"}, "weights: H100-SXM has no matrix units for fp4"),
        ({"kv": "fp4"}, "kv: 'fp4' is not known; allowed: bf16, fp8"),
        ({"mode": "decoding"}, "mode: 'decoding' is not known.*did you mean 'decode'"),
        ({"backend": "tgi"}, "backend: 'tgi' is not known; allowed: vllm, sglang, trtllm"),
        ({"tp": 3}, "tp 3 does not divide 32 attention heads"),
        ({"tp": 0}, "tp: 0 is not a whole number from 1"),
        ({"tp": 1.5}, "tp: 1.5 is not a whole number from 1"),
        ({"tp": None}, "tp: missing"),
        ({"tp": "four"}, "tp: 'four' is not a finite number"),
        ({"ep": 2}, "tp\\*dp = 1 and moe_tp\\*ep = 1\\*2 must be the same accelerators"),
        ({"tp": 2, "ep": 2}, "ep 2 needs experts, and the model has none"),
        ({"batch": -1}, "batch: -1 is not a whole number from 1"),
        ({"batch": 1e400}, "batch: 'inf' is not a finite number"),
        ({"batch": None}, "batch: missing"),
        ({"input_tokens": 0}, "input_tokens: 0 is not a whole number from 1"),
        ({"mode": "static", "output_tokens": None}, "output_tokens: at least 1 is needed in this mode"),
        ({"mode": "closed_loop", "concurrency": None}, "concurrency: missing"),
        ({"mode": "open_loop", "requests_per_s": -1}, "requests_per_s: must be above 0"),
        ({"mode": "open_loop", "requests_per_s": 1e6}, "requests_per_s: the configuration sustains"),
        ({"n_accelerators": 12, "tp": 8}, "12 is not a multiple of the 8 of one replica \\(TP8\\)"),
        ({"input_tokens": 0, "tp": 0}, "input_tokens: 0 is .*; tp: 0 is"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why(change: dict[str, object], reason: str) -> None:
    found = run({}, change, {})
    assert found["status"].tolist() == ["ok", "rejected", "ok"]
    assert found["reason"].str.contains(reason).tolist() == [False, True, False]
    assert found.loc[1, list(NUMBER_COLUMNS)].isna().all()
    assert (found["reason"].iloc[[0, 2]] == "").all()


def test_every_row_is_answered_once_in_order() -> None:
    frame = cases(
        *[
            {"model": name, "mode": mode}
            for name in ("llama3-8b", "x", "llama3-70b")
            for mode in ("prefill", "decode", "static")
        ]
        * 3
    )
    frame = frame.sample(frac=1.0, random_state=1).reset_index(drop=True)
    found = predict(frame, Path())
    assert tuple(found.columns) == OUTPUT_COLUMNS
    assert found["case_id"].tolist() == frame["case_id"].tolist()
    alone = pd.concat([predict(frame.iloc[[at]], Path()) for at in range(len(frame))], ignore_index=True)
    pd.testing.assert_frame_equal(found, alone, rtol=1e-12)


def test_an_empty_table_has_an_empty_answer() -> None:
    found = predict(cases({}).iloc[:0], Path())
    assert tuple(found.columns) == OUTPUT_COLUMNS
    assert found.empty


def test_missing_columns_are_named_at_once() -> None:
    frame = cases({}).rename(columns={"hardware": "hardwares", "tp": "tensor"})
    with pytest.raises(InputError) as caught:
        predict(frame, Path(), "cases.csv")
    text = str(caught.value)
    assert "cases.csv:1:1: hardware: the column is missing; is it the column 'hardwares'?" in text
    assert "cases.csv:1:1: tp: the column is missing" in text


def test_prefill_and_decode_steps() -> None:
    found = run({"mode": "prefill", "batch": 2}, {"mode": "decode", "batch": 8, "pp": 2, "tp": 2})
    prefill, decode = found.iloc[0], found.iloc[1]
    assert prefill["ttft_ms"] == prefill["latency_ms"]
    assert prefill["requests_per_s"] == pytest.approx(2 / prefill["latency_ms"] * 1e3)
    assert np.isnan(prefill["tpot_ms"])
    assert np.isnan(prefill["output_tokens_per_s_per_accelerator"])
    assert decode["tpot_ms"] == decode["latency_ms"]
    assert decode["requests_per_s"] == pytest.approx(2 * 8 / (100 * decode["tpot_ms"]) * 1e3)
    assert decode["output_tokens_per_s_per_accelerator"] == pytest.approx(decode["requests_per_s"] * 100 / 4)
    assert bool(decode["fits"])


def test_decode_without_an_output_length_has_a_step_but_no_request_rate() -> None:
    found = run({"output_tokens": None}).iloc[0]
    assert found["status"] == "ok"
    assert np.isnan(found["requests_per_s"])
    assert found["output_tokens_per_s_per_accelerator"] == pytest.approx(8 / found["tpot_ms"] * 1e3)


def test_static_is_prefill_and_a_decode_step_for_each_further_token() -> None:
    found = run(
        {"mode": "static"},
        {"mode": "prefill"},
        {"mode": "decode", "input_tokens": 1050},
    )
    static, prefill, decode = (found.iloc[at] for at in range(3))
    assert static["ttft_ms"] == prefill["ttft_ms"]
    assert static["tpot_ms"] == pytest.approx(decode["tpot_ms"], rel=1e-12)
    assert static["latency_ms"] == pytest.approx(prefill["latency_ms"] + 99 * decode["latency_ms"])
    assert static["requests_per_s"] == pytest.approx(8 / static["latency_ms"] * 1e3)


def test_loops_report_the_whole_system() -> None:
    alone = {"mode": "closed_loop", "concurrency": 16}
    doubled = {"mode": "closed_loop", "concurrency": 32, "n_accelerators": 2}
    found = run(alone, doubled)
    assert found["tpot_ms"].iloc[0] == pytest.approx(found["tpot_ms"].iloc[1])
    assert found["requests_per_s"].iloc[1] == pytest.approx(2 * found["requests_per_s"].iloc[0])
    per_accelerator = found["output_tokens_per_s_per_accelerator"]
    assert per_accelerator.iloc[0] == pytest.approx(per_accelerator.iloc[1])
    rate = float(found["requests_per_s"].iloc[0])
    opened = run({"mode": "open_loop", "requests_per_s": rate}).iloc[0]
    assert opened["requests_per_s"] == pytest.approx(rate)
    assert opened["tpot_ms"] == pytest.approx(found["tpot_ms"].iloc[0], rel=0.05)


def test_what_does_not_fit_is_answered_and_marked() -> None:
    found = run({"model": "llama3-70b"}, {"model": "llama3-70b", "mode": "closed_loop", "concurrency": 4})
    assert found["status"].tolist() == ["ok", "ok"]
    assert found["fits"].tolist() == [False, False]
    assert (found["memory_gib_per_accelerator"] > 80).all()


def test_other_spellings_and_defaults() -> None:
    spelt = {"backend": "TensorRT-LLM", "weights": "FP16", "hardware": "h100-sxm", "mode": "Decode"}
    plain = {"backend": "trtllm", "weights": "bf16"}
    found = run(spelt, plain)
    assert found["latency_ms"].iloc[0] == found["latency_ms"].iloc[1]
    # TensorRT-LLM keeps an FP8 cache for FP8 weights.
    given, left_out = run(
        {"backend": "trtllm", "weights": "fp8", "kv": "fp8"}, {"backend": "trtllm", "weights": "fp8"}
    )["latency_ms"]
    assert given == left_out


def test_expert_split_is_ignored_without_experts() -> None:
    found = run({"tp": 4, "moe_tp": 1}, {"tp": 4})
    assert found["status"].tolist() == ["ok", "ok"]
    assert found["latency_ms"].iloc[0] == found["latency_ms"].iloc[1]


@pytest.mark.parametrize("hardware", ["H200-SXM", "MI300X", "GPU-B"])
@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_longer_and_fuller_is_never_faster(hardware: str, mode: str) -> None:
    steps = [1, 2, 3, 8, 13, 64, 100, 512, 1000]
    grown: list[dict[str, object]] = [
        {"hardware": hardware, "mode": mode, "tp": 8, "batch": step} for step in steps
    ]
    grown += [{"hardware": hardware, "mode": mode, "tp": 8, "input_tokens": 100 * step} for step in steps]
    latency = predict(cases(*grown), Path())["latency_ms"].to_numpy()
    assert (np.diff(latency[: len(steps)]) >= -1e-9).all()
    assert (np.diff(latency[len(steps) :]) >= -1e-9).all()


def test_a_file_is_predicted_like_its_table(tmp_path: Path) -> None:
    frame = cases({}, {"tp": 2, "output_tokens": None}, {"hardware": "x"})
    file = tmp_path / "cases.csv"
    frame.to_csv(file, index=False)
    pd.testing.assert_frame_equal(predict(read_cases(file)), predict(frame))


def test_a_model_of_ones_own_is_read_beside_the_cases(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 32000,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = predict(cases({"model": "config.json"}), tmp_path)
    assert found["status"].tolist() == ["ok"]


def test_a_broken_line_or_model_is_rejected_alone(tmp_path: Path) -> None:
    """A line with too many cells, and configs that no reader takes, leave the other rows as they are."""
    deep, huge, pipe = tmp_path / "deep.json", tmp_path / "huge.json", tmp_path / "pipe"
    deep.write_text("[" * 100_000)
    huge.write_text('{"model_type": "llama", "hidden_size": ' + "1" * 5000 + "}")
    os.mkfifo(pipe)
    models = ["deep.json", "huge.json", "pipe", "n" * 5000, "a\0b"]
    frame = cases({}, *({"model": model} for model in models), {})
    text = frame.to_csv(index=False).splitlines()
    text[-1] += ",1,2,3"
    file = tmp_path / "cases.csv"
    file.write_text("\n".join([*text, text[1]]) + "\n")
    found = predict(read_cases(file, keep_broken=True), tmp_path)
    assert found["status"].tolist() == ["ok", *["rejected"] * 6, "ok"]
    assert found.loc[0, "tpot_ms"] == found.loc[7, "tpot_ms"] == predict(cases({})).loc[0, "tpot_ms"]
    wanted = ("nested too deeply", "has more than 20 digits", "pipe", "nnn", "", "line 8: ")
    assert [part in reason for part, reason in zip(wanted, found["reason"][1:], strict=False)] == [True] * 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; a header line"),
        (b"\x89PNG\xff\x00", "cannot be read as CSV"),
        (b"case_id,model\n1,2,3\n", ":2:1: 3 cells where the header has 2"),
        (b'case_id,model\n1,"2\n', "cannot be read as CSV"),
    ],
)
def test_files_that_are_no_table_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "cases.csv"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_cases(file)
    with pytest.raises(InputError, match="No such file"):
        read_cases(tmp_path / "missing.csv")


def test_columns_that_are_there_twice_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "cases.csv"
    file.write_text("case_id,model,hardware,weights,mode,tp,input_tokens,tp\n")
    with pytest.raises(InputError, match="tp: the column is given twice"):
        predict(read_cases(file))


def test_accelerators_of_one_s_own_stand_beside_those_of_the_catalogue() -> None:
    own = replace(accelerators()["H100-SXM"], name="mine").with_figures(hbm_gb_per_s=6700.0)
    rows = cases({"hardware": "mine"}, {"hardware": "MINE"}, {"hardware": "H100-SXM"}, {"hardware": "yours"})
    found = predict(rows, Path(), parts={**accelerators(), "mine": own})
    assert found["status"].tolist() == ["ok", "ok", "ok", "rejected"]
    fast, same, plain, _ = found["tpot_ms"]
    assert fast == same < plain


@pytest.mark.parametrize("mode", ["burst", "closed_loop", "open_loop"])
def test_a_server_that_holds_one_request_fits_however_many_are_sent(mode: str) -> None:
    """Requests beyond the server's capacity wait outside it and take no memory."""
    row = {"case_id": "a", "model": "mistralai/Mistral-Small-24B-Base-2501", "hardware": "MI350X", "tp": 4}
    row |= {"backend": "trtllm", "weights": "mxfp4", "mode": mode, "input_tokens": 3078}
    row |= {"concurrency": 4096, "requests_per_s": 4.0}
    rows = [row | {"output_tokens": each} for each in (1, 17, 500, 1000, 1500, 2000, 8192, 8_000_000)]
    with np.errstate(divide="raise"):
        found = predict(pd.DataFrame(rows)).query("status == 'ok'")
    assert len(found) > 5
    assert found["fits"].all()
    capacity_gib = accelerators()["MI350X"].hbm_gib
    assert found["memory_gib_per_accelerator"].max() <= capacity_gib


@pytest.mark.parametrize("mode", ["burst", "closed_loop"])
def test_what_fits_does_not_depend_on_how_many_wait(mode: str) -> None:
    row = {"model": "mistralai/Mistral-Small-24B-Base-2501", "hardware": "MI350X", "tp": 4, "mode": mode}
    row |= {"backend": "trtllm", "weights": "mxfp4", "input_tokens": 3078, "output_tokens": 500}
    clients = [2000, 2500, 3000, 4096, 6000]
    found = predict(pd.DataFrame([row | {"case_id": each, "concurrency": each} for each in clients]))
    assert found["fits"].all()
    memory_gib = found["memory_gib_per_accelerator"]
    assert memory_gib.to_numpy() == pytest.approx(memory_gib[0], rel=1e-3)


def test_a_static_batch_names_what_its_prompts_wait_for() -> None:
    """A static batch of one output token names the bottleneck of its prompts."""
    row = {"case_id": "a", "model": "meta-llama/Llama-2-13b-hf", "hardware": "MI300X", "weights": "bf16"}
    row |= {"backend": "sglang", "tp": 8, "mode": "static", "batch": 1, "input_tokens": 9, "output_tokens": 1}
    found = predict(pd.DataFrame([row, row | {"sampling": "top-p"}]))
    assert found["bottleneck"].tolist() == ["host_launches"] * 2
