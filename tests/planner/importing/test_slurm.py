"""Slurm nodes as pools."""

from __future__ import annotations

import pytest
from tests.planner.importing.cluster_nodes import OPTIONS, SINFO, pools

from fleetplan.planner.importing.clusters import PoolOptions
from fleetplan.planner.importing.slurm import slurm_pools

SLURM_NODES = {
    "nodes": [
        {"name": "h1", "gres": "gpu:h100:8(S:0-1)", "state": "idle", "state_flags": []},
        {"name": "h2", "gres": "gpu:h100:8(S:0-1)", "state": "down", "state_flags": ["DRAIN"]},
    ]
}
"""By the schema of Slurm 22.05, which is also that of `scontrol show nodes --json`."""


def test_a_node_of_several_partitions_counts_once() -> None:
    options = PoolOptions("2026-11-24", region="east", rent_usd_per_accelerator_hour=2.0)
    found = slurm_pools(SINFO, "sinfo.json", options)
    rented = {"usd_per_accelerator_hour": 2.0, "price_as_of": "2026-11-24"}
    assert pools(found.text) == {
        "east-h100-sxm": {"name": "east-h100-sxm", "region": "east", "hardware": "H100-SXM", "hosts": 2,
                          "rented": rented},
        "east-h200-sxm": {"name": "east-h200-sxm", "region": "east", "hardware": "H200-SXM", "hosts": 1,
                          "rented": rented},
    }  # fmt: skip
    assert "3 nodes with accelerators, 1 of them out of service" in found.text
    assert {each.place: each.reason for each in found.rejected} == {
        "c1 and 1 more": "has no accelerators",
        "u1": "gres gpu:8 names no kind: give --hardware",
        "m1": "has accelerators of several kinds: gpu:h100:4,gpu:h200:4",
    }
    odd = {"nodes": [{"name": "n", "gres": "gpu:h100:8x", "state": "idle"}, SLURM_NODES["nodes"][0]]}
    (rejected,) = slurm_pools(odd, "sinfo.json", OPTIONS).rejected
    assert rejected.reason == "gres 'gpu:h100:8x' is not supported"
    told = PoolOptions("2026-11-24", hardware="b200")
    assert "B200-SXM" in slurm_pools(SINFO, "sinfo.json", told).text


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"nodes": {"nodes": ["gpu[01-04]"]}, "node": {"state": ["IDLE"]}}, "represents several nodes"),
        ({"nodes": {"nodes": [], "total": 4}, "node": {"state": ["IDLE"]}}, "represents several nodes"),
        ({"nodes": {"nodes": ["c1"]}, "node": {"state": ["IDLE", "CLOUD", "POWERED_DOWN"]}}, "cloud machine"),
        ({"nodes": {"nodes": ["c1"]}, "node": {"state": ["FUTURE"]}}, "FUTURE"),
    ],
)
def test_nodes_of_slurm_that_are_not_one_host_are_not_counted(row: dict[str, object], reason: str) -> None:
    document = {"sinfo": [{**row, "gres": {"total": "gpu:h100:8"}}, SINFO["sinfo"][0]]}  # type: ignore[index]
    found = slurm_pools(document, "sinfo.json", OPTIONS)
    assert [reason in each.reason for each in found.rejected] == [True]
    assert pools(found.text)["h100-sxm"]["hosts"] == 2


def test_older_slurm_lists_nodes() -> None:
    found = slurm_pools(SLURM_NODES, "sinfo.json", OPTIONS)
    assert pools(found.text) == {"h100-sxm": {"name": "h100-sxm", "hardware": "H100-SXM", "hosts": 2}}
    assert "1 of them out of service" in found.text


def test_states_of_sinfo_are_those_of_its_json() -> None:
    rows = [
        {
            "node": {"state": states},
            "nodes": {"total": 1, "nodes": [f"n{number}"]},
            "gres": {"total": "gpu:h100:8(S:0-1)"},
        }
        for number, states in enumerate(
            (["IDLE"], ["IDLE", "MAINTENANCE", "RESERVED"], ["DOWN", "INVALID_REG"], ["PLANNED"])
        )
    ]
    found = slurm_pools({"sinfo": rows}, "sinfo.json", OPTIONS)
    assert "4 nodes with accelerators, 2 of them out of service" in found.text


@pytest.mark.parametrize("kind", ["1g.10gb", "nvidia_h100_80gb_hbm3_1g.10gb"])
def test_parts_of_cards_in_gres_are_no_other_hardware(kind: str) -> None:
    row = {
        "node": {"state": ["IDLE"]},
        "nodes": {"total": 1, "nodes": ["n"]},
        "gres": {"total": f"gpu:{kind}:56(S:0-1)"},
    }
    (rejected,) = slurm_pools({"sinfo": [row]}, "sinfo.json", OPTIONS).rejected
    assert rejected.reason == f"{kind}: parts of a card (MIG) are not accelerators in the catalogue"
