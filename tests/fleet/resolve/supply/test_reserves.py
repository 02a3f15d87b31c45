"""Reserves in hosts and in per cent: one of them, and none of single accelerators."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
policy: {{{policy}}}
pools: [{{name: p, hardware: H100-SXM, {pool}, rented: {{usd_per_accelerator_hour: 2}}}}]
services:
  - {{name: chat, model: llama3-8b, workload: {{input_tokens: 9, output_tokens: 9}}, demand: 1}}
"""


def fleet_with(folder: Path, policy: str = "", pool: str = "hosts: 2") -> Fleet:
    path = folder / "fleet.yaml"
    path.write_text(FLEET.format(policy=policy, pool=pool), encoding="utf-8")
    return load_fleet(str(path))


def test_reserves_are_read(tmp_path: Path) -> None:
    fleet = fleet_with(tmp_path, "reserve_percent_per_pool: 12.5", "hosts: 2, reserve_percent: 5")
    assert fleet.policy.reserve_percent_per_pool == 12.5
    assert (fleet.pools[0].reserve_hosts, fleet.pools[0].reserve_percent) == (None, 5)


@pytest.mark.parametrize(
    ("policy", "pool", "said"),
    [
        (
            "",
            "hosts: 2, reserve_hosts: 1, reserve_percent: 5",
            r"pools\.p\.reserve_percent: cannot be combined with",
        ),
        (
            "reserve_hosts_per_pool: 1, reserve_percent_per_pool: 5",
            "hosts: 2",
            r"policy\.reserve_percent_per_pool: cannot be combined with",
        ),
        (
            "",
            "accelerators: 2, reserve_percent: 5",
            r"p\.reserve_percent: cannot be combined with accelerators",
        ),
        ("reserve_percent_per_pool: 101", "hosts: 2", r"policy\.reserve_percent_per_pool"),
        ("", "hosts: 2, reserve_percent: -1", r"pools\.p\.reserve_percent"),
    ],
)
def test_reserves_that_make_no_sense_are_refused(tmp_path: Path, policy: str, pool: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fleet_with(tmp_path, policy, pool)
