"""`plan optables measure` and `compare`: errors, interruption, and a plan from a table of this CPU."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.planner.command_line import run

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.perfmodel.microbench.points import Measurement, Point
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.optables.own import store as own_tables

pytestmark = pytest.mark.usefixtures("plain_folders")

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs the extra microbench (torch)")

MODEL = {
    "model_type": "llama",
    "hidden_size": 128,
    "vocab_size": 256,
    "tie_word_embeddings": False,
    "num_hidden_layers": 2,
    "max_position_embeddings": 4096,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
}
FLEET = """\
version: 1
hardware:
  cpu-host: {bf16_tflops: 1, hbm_gib: 64, hbm_gb_per_s: 20, scale_up_gb_per_s: 20, profile: nvidia-fitted}
pools: [{name: p, hardware: cpu-host, hosts: 4, rented: {usd_per_accelerator_hour: 0.2}}]
services:
  - name: chat
    model: config.json
    workload: {input_tokens: 64, output_tokens: 20}
    slo: {ttft_ms: 5000, tpot_ms: 500}
    demand: 1
    runtimes: [aggregated]
"""
TABLE = "operator,dtype,m,n,k,latency_us\n" + "".join(
    f"gemm,bf16,{m},4096,4096,{{}}\n" for m in (1, 64, 4096)
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_tables, "own_tables_folder", lambda: tmp_path / "data")
    monkeypatch.setenv("FLEETPLAN_LANDSCAPE_CACHE", "off")
    if HAS_TORCH:
        # Small figures and caches: the times are not looked at.
        room = "fleetplan.perfmodel.microbench"
        monkeypatch.setattr(f"{room}.device.CPU_REUSE_BYTES", 2**20)
        monkeypatch.setattr(f"{room}.device.LOOK_S", 0.0)
        monkeypatch.setattr(f"{room}.control.CONTROL_SIDE", {"cpu": 32})
        monkeypatch.setattr(f"{room}.timing.TimingEffort.__init__.__defaults__", (0.02, 0.001))
        monkeypatch.setattr(f"{room}.figures.COPY_BYTES", 2**20)
        monkeypatch.setattr(f"{room}.figures.PRODUCT_SIDE", {"cpu": 64})
    Path("config.json").write_text(json.dumps(MODEL), encoding="utf-8")
    Path("fleet.yaml").write_text(FLEET, encoding="utf-8")


def test_without_torch_the_command_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # An import of it fails, whether it is installed or not.
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run("optables", "measure", "--hardware", "cpu-host", "--out", "new", "--device", "cpu") == 2
    assert "needs torch; pip install 'fleetplan[microbench]'" in capsys.readouterr().err
    assert not Path("new").exists()


@needs_torch
def test_a_plan_rests_on_a_table_of_this_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    measure = ("optables", "measure", "--hardware", "cpu-host", "--for", "fleet.yaml", "--out", "own")
    quick = ("--device", "cpu", "--step-tokens", "64", "--target", "1")
    assert run(*measure, *quick) == 0
    said = capsys.readouterr().out
    assert "written to own/optable.csv and own/hardware.yaml" in said
    assert run(*measure, *quick) == 0
    again = capsys.readouterr()
    assert "(0 new)" in again.out
    assert "continues after" in again.err
    block = read_yaml(Path("own/hardware.yaml").read_text(encoding="utf-8"))["hardware"]["cpu-host"]
    assert block["optables"] == "optable.csv"
    fleet = read_yaml(FLEET)
    fleet["hardware"]["cpu-host"] = block | {"optables": "own/optable.csv"}
    Path("fleet.yaml").write_text(yaml_text(fleet), encoding="utf-8")
    operator_source.cache_clear()
    assert run("solve", "fleet.yaml", "--out", "out") == 0
    plan = json.loads(Path("out/plan.json").read_text(encoding="utf-8"))
    (source,) = {each["path"] for each in plan["provenance"]["table_sources"]}
    assert source.endswith("own/optable.csv")
    # Of another device, a folder is another one's.
    assert run(*measure, *quick, "--threads", "2") == 2
    assert re.search(r"holds points of device '.*, 1 thread', not of", capsys.readouterr().err)


@needs_torch
def test_an_interruption_leaves_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fleetplan.perfmodel.microbench import single  # noqa: PLC0415

    measured = single.measure_alone
    attempts: list[Point] = []

    def interrupted(each: Point, *rest: object) -> Measurement:
        attempts.append(each)
        if len(attempts) > 3:
            raise KeyboardInterrupt
        return measured(each, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(single, "measure_alone", interrupted)
    command = ("optables", "measure", "--hardware", "cpu-host", "--for", "fleet.yaml", "--out", "own")
    assert run(*command, "--device", "cpu", "--step-tokens", "64") == 130
    assert "interrupted; own holds the measurements so far" in capsys.readouterr().err
    assert len(pd.read_csv("own/optable.csv")) == 3


@needs_torch
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "tpu"), "--device tpu: is not a device; allowed: cpu, cuda"),
        (("--device", "cpu", "--for", "none.yaml"), "none.yaml"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("optables", "measure", "--hardware", "x", "--out", "own", *options) == 2
    assert message in capsys.readouterr().err


def test_two_tables_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text(TABLE.format(10, 20, 400), encoding="utf-8")
    Path("b.csv").write_text(TABLE.format(11, 22, 440), encoding="utf-8")
    assert run("optables", "compare", "a.csv", "b.csv", "--hardware", "MI300X") == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if each.startswith("gemm")]
    assert line.split()[:7] == ["gemm", "bf16", "3", "3", "1.100", "1.100", "1.100"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.csv", "b.csv", "--hardware", "MI300"), "'MI300' is not in the catalogue"),
        (("a.csv", "none.csv", "--hardware", "MI300X"), "none.csv"),
        (
            ("a.csv", "packaged:vlm", "--hardware", "H200-SXM"),
            "'vlm' is not a framework; .*did you mean 'vllm'",
        ),
        (("a.csv", "packaged:vllm", "--hardware", "MI300X"), "the package has no tables for this hardware"),
    ],
)
def test_tables_that_cannot_be_compared(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.csv").write_text(TABLE.format(10, 20, 400), encoding="utf-8")
    Path("b.csv").write_text(TABLE.format(11, 22, 440), encoding="utf-8")
    assert run("optables", "compare", *arguments) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert pd.Series([shown]).str.contains(message).all(), shown


def test_a_table_is_compared_with_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("aiconfigurator_core") is None:
        pytest.skip("the measured tables are not installed")
    Path("a.csv").write_text(TABLE.format(10, 20, 400), encoding="utf-8")
    assert run("optables", "compare", "a.csv", "packaged:vllm", "--hardware", "H200-SXM") == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if each.startswith("gemm")]
    assert line.split()[:4] == ["gemm", "bf16", "3", "3"]
