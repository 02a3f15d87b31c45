"""Every command that reads a file, and a good file of each kind with a place for a bad value."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ENGINES = "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,gpu,1,c1,{}\n"

FLEET = """\
version: 1
hardware: {gpu: {accelerators_per_host: 1, all_in_w: 500}}
offers: [{name: rent, hardware: gpu, rent_usd_per_accelerator_hour: 2.0}]
services: [{name: chat, engines: engines.csv, demand: VALUE}]
"""

COMPUTED = """\
version: 1
hardware: {gpu: {bf16_tflops: 300, hbm_gib: 40, hbm_gb_per_s: 2000, scale_up_gb_per_s: 100MORE}}
offers: [{name: rent, hardware: gpu, rent_usd_per_accelerator_hour: 2.0}]
services:
  - name: chat
    model: MODEL
    workload: WORKLOAD
    slo: {ttft_ms: 500, tpot_ms: 50}
    demand: 1
"""

CONFIG = """\
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": VALUE, "num_hidden_layers": 4,
 "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 4096, "vocab_size": 32000}
"""

VLLM = """\
{"backend": "vllm", "model_id": "llama3.1-8b", "num_prompts": 100, "completed": 100, "max_concurrency": 8,
 "total_input_tokens": VALUE, "total_output_tokens": 12800, "duration": 30.0, "request_throughput": 3.3,
 "mean_ttft_ms": 100.0, "mean_tpot_ms": 10.0}
"""

KUBERNETES = """\
{"items": [{"kind": "Node", "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "NVIDIA-H200"}},
 "status": {"capacity": {"nvidia.com/gpu": VALUE}}}]}
"""

FORMS = {"fleet": "yaml", "imported": "yaml", "plan": "json", "config": "json", "vllm": "json"}
"""Languages of the files; all others are CSV."""


@dataclass(frozen=True)
class Reader:
    """A command that reads a file.

    Attributes
    ----------
    form : str
        Language of the file: yaml, json or csv.
    good : str
        A good file, with `VALUE` in the place of a number.
    command : Callable[[Path, Path], Sequence[object]]
        The command line for a hostile file and a folder of one's own, with whatever else it needs in it.
    """

    form: str
    good: str
    command: Callable[[Path, Path], Sequence[object]]


def _fleet_with(change: Callable[[Path], str]) -> Callable[[Path, Path], Sequence[object]]:
    """Check a fleet that names the hostile file."""

    def command(hostile: Path, folder: Path) -> Sequence[object]:
        path = folder / "fleet.yaml"
        path.write_text(change(hostile), encoding="utf-8")
        (folder / "model.json").write_text(CONFIG.replace("VALUE", "1024"), encoding="utf-8")
        return ["check", path]

    return command


def _computed(
    model: str = "model.json", workload: str = "{input_tokens: 9, output_tokens: 9}", more: str = ""
) -> str:
    return COMPUTED.replace("MODEL", model).replace("WORKLOAD", workload).replace("MORE", more)


def _beside(folder: Path) -> Path:
    """A good fleet with its engines."""
    (folder / "engines.csv").write_text(ENGINES.format(1.0), encoding="utf-8")
    path = folder / "fleet.yaml"
    path.write_text(FLEET.replace("VALUE", "1"), encoding="utf-8")
    return path


def _check(hostile: Path, folder: Path) -> Sequence[object]:
    # The engines stand beside the file that names them.
    if hostile.parent == folder.parent:
        _beside(hostile.parent)
    return ["check", hostile]


def _packed(hostile: Path) -> Path:
    """The hostile file as a .gz of it, where it is an ordinary file that can be read."""
    if hostile.is_file() and hostile.stat().st_size < 2**30 and not hostile.is_symlink():
        hostile.write_bytes(gzip.compress(hostile.read_bytes(), 1))
    return hostile


def _named_requests(hostile: Path) -> Path:
    """A folder in which the hostile file has the name of an answer."""
    folder = hostile.parent / "answers"
    folder.mkdir()
    (folder / "requests.json").symlink_to(hostile)
    return folder


SEPARATOR = "\n"

READERS: dict[str, Reader] = {
    "fleet": Reader("yaml", FLEET, _check),
    "imported fleet": Reader(
        "yaml", "policy: {reserve_hosts_per_pool: VALUE}\n",
        _fleet_with(lambda hostile: f'imports: ["{hostile}"]\n{_computed()}'),
    ),
    "engine table": Reader(
        "csv", ENGINES.replace("{}", "VALUE"),
        _fleet_with(lambda hostile: FLEET.replace("engines.csv", f'"{hostile}"').replace("VALUE", "1")),
    ),
    "model of a fleet": Reader("json", CONFIG, _fleet_with(lambda hostile: _computed(model=f'"{hostile}"'))),
    "lengths": Reader(
        "csv", "input_tokens,output_tokens\nVALUE,20\n",
        _fleet_with(lambda hostile: _computed(workload=f'{{lengths: "{hostile}"}}')),
    ),
    "operator table of a fleet": Reader(
        "csv", "operator,dtype,latency_us,hardware,m,n,k\ngemm,bf16,VALUE,gpu,1,1,1\n",
        _fleet_with(lambda hostile: _computed(more=f', optables: "{hostile}"')),
    ),
    "operator table": Reader(
        "csv", "operator,dtype,latency_us,hardware,m,n,k\ngemm,bf16,VALUE,H100-SXM,1,1,1\n",
        lambda hostile, _: ["optables", "import", hostile, "--hardware", "H100-SXM"],
    ),
    "config": Reader("json", CONFIG, lambda hostile, _: ["import", "model", hostile]),
    "benchmark": Reader(
        "json", VLLM,
        lambda hostile, folder: [
            "import", "benchmark", "vllm", hostile, "--hardware", "H100-SXM", "--tp", 1, "--weights", "bf16",
            "--framework-version", "0.24.0", "--out", folder / "bench.csv",
        ],
    ),
    "inventory": Reader(
        "csv", "name,region,hardware,hosts,capex_usd_per_host\np,r,H100-SXM,VALUE,200000\n",
        lambda hostile, folder: ["import", "inventory", hostile, "--out", folder / "pools.yaml"],
    ),
    "prices": Reader(
        "csv", "name,hardware,regions,rent_usd_per_accelerator_hour\no,H100-SXM,r,VALUE\n",
        lambda hostile, folder: ["import", "prices", hostile, "--out", folder / "offers.yaml"],
    ),
    "nodes of Kubernetes": Reader(
        "json", KUBERNETES,
        lambda hostile, folder: ["import", "kubernetes", hostile, "--out", folder / "pools.yaml"],
    ),
    "nodes of Slurm": Reader(
        "json", '{"nodes": [{"name": "n", "gres": "gpu:h100:VALUE", "state": "idle"}]}',
        lambda hostile, folder: ["import", "slurm", hostile, "--out", folder / "pools.yaml"],
    ),
    "SkyPilot's catalogue": Reader(
        "csv", "InstanceType,AcceleratorName,AcceleratorCount,Price,Region\nx,H100,8,VALUE,r\n",
        lambda hostile, folder: ["import", "skypilot", hostile, "--out", folder / "offers.yaml"],
    ),
    "FOCUS": Reader(
        "csv",
        "ChargeCategory,EffectiveCost,ChargePeriodStart,ChargePeriodEnd,RegionId,ConsumedQuantity,ConsumedUnit,"
        "x_InstanceType\nUsage,VALUE,2026-10-01,2026-10-02,r,1,Hours,p5.48xlarge\n",
        lambda hostile, folder: ["import", "focus", hostile, "--out", folder / "offers.yaml"],
    ),
    "answers of Prometheus": Reader(
        "json",
        '{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {"model_name": "m"}, '
        '"values": [[VALUE, "-1"]]}]}}',
        lambda hostile, folder: [
            "import", "prometheus", _named_requests(hostile), "--system", "vllm", "--out", folder / "demand",
        ],
    ),
    "trace": Reader(
        "csv", "arrival_s,input_tokens,output_tokens\n0,VALUE,20\n5,9,20\n",
        lambda hostile, folder: [
            "import", "trace", hostile, "--service", "chat", "--out", folder / "traffic",
        ],
    ),
    "packed trace": Reader(
        "csv", "arrival_s,input_tokens,output_tokens\n0,VALUE,20\n5,9,20\n",
        lambda hostile, folder: [
            "import", "trace", _packed(hostile), "--service", "chat", "--out", folder / "traffic",
        ],
    ),
    "measurements": Reader(
        "csv",
        "case_id,model,hardware,framework,framework_version,weights,kv,tp,input_tokens,output_tokens,mode,batch,"
        "tpot_ms\n"
        "c,llama3.1-8b,H100-SXM,vllm,0.24.0,bf16,bf16,1,512,64,static,8,VALUE\n",
        lambda hostile, folder: ["calibrate", "--measurements", hostile, "--out", folder / "own.yaml"],
    ),
    "plan to verify": Reader("json", "", lambda hostile, folder: ["verify", hostile, _beside(folder)]),
    "plan to export": Reader(
        "json", "", lambda hostile, folder: ["export", hostile, "--as", "purchases", "--out", folder / "out"]
    ),
    "plan to report": Reader("json", "", lambda hostile, own: ["report", hostile, "--out", own / "out"]),
    "plan to replay": Reader("json", "", lambda hostile, own: ["replay", hostile, "--out", own / "out"]),
    "plan to compare": Reader("json", "", lambda hostile, folder: ["diff", hostile, hostile]),
    "plan in force": Reader(
        "json", "", lambda hostile, folder: ["solve", _beside(folder), "--baseline", hostile]
    ),
}  # fmt: skip
