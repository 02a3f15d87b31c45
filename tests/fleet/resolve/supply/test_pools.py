"""Reserves of pools: as the policy has it, as the pool has it, and none of single accelerators."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.problem.supply import supply_pools
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
policy: {{reserve_hosts_per_pool: 2}}
pools: [{{name: own, hardware: H100-SXM, {counted}, rented: {{usd_per_accelerator_hour: 2}}}}]
offers: [{{name: more, hardware: H100-SXM, {per}, rent_usd_per_accelerator_hour: 2}}]
services: [{{name: chat, engines: rates.csv, slo: {{}}, demand: 5}}]
"""
RATES = "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,H100-SXM,1,one,10\n"


def read(folder: Path, counted: str, per: str = "per: host") -> Fleet:
    (folder / "rates.csv").write_text(RATES)
    (folder / "fleet.yaml").write_text(FLEET.format(counted=counted, per=per))
    return load_fleet(folder / "fleet.yaml")


@pytest.mark.parametrize(
    ("counted", "per", "reserves"),
    [
        ("hosts: 9", "per: host", [2]),
        ("hosts: 9, reserve_hosts: 3", "per: host", [3]),
        ("hosts: 9, reserve_hosts: 0", "per: host", [0]),
        # Capacity in single accelerators keeps none, whether it stands or is offered, joined or apart.
        ("accelerators: 9", "per: accelerator", [0]),
        ("accelerators: 9", "per: host", [0, 2]),
        ("hosts: 9", "per: accelerator", [2, 0]),
    ],
)
def test_one_rule_says_what_a_pool_keeps_free(
    tmp_path: Path, counted: str, per: str, reserves: list[int]
) -> None:
    assert [pool.reserve_units for pool in supply_pools(read(tmp_path, counted, per))] == reserves


def test_a_reserve_of_single_accelerators_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"own\.reserve_hosts: cannot be combined with accelerators; single accel"
    ):
        read(tmp_path, "accelerators: 9, reserve_hosts: 1")
