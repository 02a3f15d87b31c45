"""Fleets for faults: one with a landscape to keep, and one that takes longer than a test waits."""

from __future__ import annotations

import json
import random
from pathlib import Path

from fleetplan.fleet.document.plain import yaml_text

SERVICES = 150
"""So many that the search goes on for minutes at a gap of 0."""

PARTS = ("gpu-a", "gpu-b", "gpu-c")
SIZES = (1, 3, 5, 7)


def with_landscape(folder: Path) -> Path:
    """Write a fleet with a small model, whose landscape takes a tenth of a second."""
    folder.mkdir(parents=True, exist_ok=True)
    model = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024,
        "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
        "intermediate_size": 4096, "vocab_size": 32000,
    }  # fmt: skip
    (folder / "model.json").write_text(json.dumps(model), encoding="utf-8")
    part = {"bf16_tflops": 300, "hbm_gib": 40, "hbm_gb_per_s": 2000, "scale_up_gb_per_s": 100}
    file = {
        "version": 1,
        "hardware": {"gpu": part | {"all_in_w": 500, "profile": "carried-over"}},
        "offers": [{"name": "rent", "hardware": "gpu", "rent_usd_per_accelerator_hour": 2.0}],
        "services": [
            {
                "name": "chat",
                "model": "model.json",
                "workload": {"input_tokens": 512, "output_tokens": 64},
                "slo": {"ttft_ms": 500, "tpot_ms": 50},
                "demand": 500,
            }
        ],
    }
    return _written(folder, file)


def long_search(folder: Path) -> Path:
    """Write a fleet whose proof takes minutes: replicas of odd sizes that share hosts of eight."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(1)
    services = []
    for n in range(SERVICES):
        rows = ["phase,hardware,accelerators_per_replica,config,requests_per_s"]
        rows += [
            f"aggregated,{part},{size},c{size},{size * dice.uniform(0.8, 1.2):.3f}"
            for part in PARTS
            for size in SIZES
        ]
        (folder / f"e{n}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        demand = round(dice.uniform(3, 40), 2)
        services.append({"name": f"s{n}", "engines": f"e{n}.csv", "demand": demand})
    rent = {
        part: {"name": part, "hardware": part, "rent_usd_per_accelerator_hour": round(dice.uniform(1, 4), 2)}
        for part in PARTS
    }
    limit = {"max_hosts": 40}
    file = {
        "version": 1,
        "hardware": {part: {"accelerators_per_host": 8} for part in PARTS},
        "offers": [offer | (limit if part == "gpu-a" else {}) for part, offer in rent.items()],
        "policy": {"max_configs_per_service_region": 2},
        "services": services,
    }
    return _written(folder, file)


def trivial_services(folder: Path, count: int) -> Path:
    """Write a fleet of services with one way to run each, all from one table."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,gpu,1,c,10\n"
    (folder / "engines.csv").write_text(rows, encoding="utf-8")
    file = {
        "version": 1,
        "hardware": {"gpu": {"accelerators_per_host": 8}},
        "offers": [{"name": "rent", "hardware": "gpu", "rent_usd_per_accelerator_hour": 2.0}],
        "services": [{"name": f"s{n}", "engines": "engines.csv", "demand": 5 + n % 7} for n in range(count)],
    }
    return _written(folder, file)


def _written(folder: Path, file: object) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(yaml_text(file), encoding="utf-8")
    return path
