"""A fleet file that includes an imported fragment."""

from __future__ import annotations

from pathlib import Path

from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.load import load_fleet


def fleet_with(folder: Path, imported: str, **more: object) -> Fleet:
    """A fleet of one chat in the region `here` that imports a file of its folder."""
    fleet = {
        "version": 1,
        "name": "f",
        "horizon": {"periods": ["2027Q1"]},
        "regions": {"here": {"power_kw": 100, "pue": 1.2, "energy_usd_per_kwh": 0.1}},
        "imports": [imported],
        **more,
        "services": [
            {
                "name": "chat",
                "model": "llama3-70b",
                "precision": {"weights": "fp8", "kv": "fp8"},
                "workload": {"input_tokens": 1000, "output_tokens": 200},
                "slo": {"tpot_ms": 50},
                "demand": 5,
            }
        ],
    }
    (folder / "fleet.yaml").write_text(yaml_text(fleet), encoding="utf-8")
    return load_fleet(folder / "fleet.yaml")
