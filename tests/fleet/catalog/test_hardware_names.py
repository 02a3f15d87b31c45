"""Names of hardware that others use, for the catalogue's."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.catalog.hardware_names import (
    UnknownHardwareError,
    catalogue_hardware,
    hardware_hint,
    hardware_names,
    instance_types,
)
from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.errors import InputError
from fleetplan.scenarios.load import load_fleet

TABLE = Path(__file__).parents[3] / "fleet" / "catalog" / "hardware_names.yaml"


@pytest.mark.parametrize(
    ("name", "hardware"),
    [
        # nvidia-smi, and GPU feature discovery's label of the same card.
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("NVIDIA-H100-80GB-HBM3", "H100-SXM"),
        ("NVIDIA-A100-SXM4-80GB", "A100-SXM-80GB"),
        ("NVIDIA-GB200", "GB200-NVL72"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("nvidia-h200-141gb", "H200-SXM"),
        ("tpu-v6e-slice", "TPU-v6e"),
        ("b200-trt", "B200-SXM"),
        ("mi355x", "MI355X"),
        ("NVIDIA H200-SXM-141GB", "H200-SXM"),
        # As clusters write the GRES of Slurm.
        ("h100_sxm5", "H100-SXM"),
        ("h200_sxm5", "H200-SXM"),
        ("p5.48xlarge", "H100-SXM"),
        ("a3-ultragpu-8g", "H200-SXM"),
        ("standard_nd96isr_mi300x_v5", "MI300X"),
        ("h100-sxm", "H100-SXM"),
        # AMD's labeller: names of sysfs, device ids of cards and of their virtual functions; rocm-smi's 0x.
        ("AMD_Instinct_MI325_OAM", "MI325X"),
        ("AMD_Instinct_MI355_OAM", "MI355X"),
        ("AMD_Instinct_MI300X_VF", "MI300X"),
        ("74b5", "MI300X"),
        ("0x75A3", "MI355X"),
        ("75a0", "MI350X"),
        # With a vendor's words before it, and without.
        ("Instinct MI300X", "MI300X"),
        ("AMD MI300X", "MI300X"),
        ("NVIDIA A100-SXM-40GB", "A100-SXM-40GB"),
        ("AMD MI325X OAM", "MI325X"),
        ("H100 80GB HBM3", "H100-SXM"),
        ("H800 SXM", "H800-SXM"),
        ("HL-335", "Gaudi3"),
        ("Google TPU v6e", "TPU-v6e"),
        ("AWS Trainium2", "Trainium2"),
        # InferenceX: a label, a cluster, and one runner of a cluster.
        ("h200-multinode", "H200-SXM"),
        ("b200-nscale-slurm_3", "B200-SXM"),
        ("mi355x-amds_04", "MI355X"),
        ("rtx6000pro-lat_00", "RTX-PRO-6000-Server"),
        ("cluster:b300-nv", "B300-SXM"),
        ("cluster:mi300x-amds", "MI300X"),
        ("cluster:h100-dgxc-slurm_03", "H100-SXM"),
        ("tpuv7", "TPU-7x"),
        # MLPerf.
        ("AMD Instinct MI355X 288GB HBM3e", "MI355X"),
        ("NVIDIA L4-PCIe-24GB", "L4"),
        ("NVIDIA H100-NVL-94GB", "H100-NVL"),
        ("Standard_NC80adis_H100_v5", "H100-NVL"),
        ("NVIDIA-GeForce-RTX-4090", "RTX-4090"),
        ("NVIDIA GB10", "GB10"),
        # SkyPilot's slices of TPUs.
        ("tpu-v6e-8", "TPU-v6e"),
        ("tpu-v5litepod-16", "TPU-v5e"),
        # Google Cloud's own.
        ("v6e-8", "TPU-v6e"),
        ("v5litepod-16", "TPU-v5e"),
        # Clouds.
        ("gr6.4xlarge", "L4"),
        ("p6e-gb300.36xlarge", "GB300-NVL72"),
        ("a4-highgpu-8g-nolssd", "B200-SXM"),
        ("Standard_ND96isrf_H200_v5", "H200-SXM"),
    ],
)
def test_names_of_tools_and_clouds_mean_parts_of_the_catalogue(name: str, hardware: str) -> None:
    assert catalogue_hardware(name) == hardware


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("H10-SXM", "did you mean 'H100-SXM'"),
        ("p5.48xlrge", "did you mean 'p5.48xlarge'"),
        ("A100", "is 40 GB at some, 80 GB at others"),
        ("NVIDIA H200-NVL-141GB", "is a PCIe card"),
        ("AMD_Instinct_MI308X", "with fewer compute units"),
        ("MI308X", "with fewer compute units"),
        ("NVIDIA-A10", "faster tensor cores than A10G"),
        ("L40", "half the speed of L40S"),
        ("HL-338", "is a PCIe card of 600 W"),
        ("u-p6e-gb200x72", "18 of p6e-gb200.36xlarge"),
        ("0x74a0", r"\(MI300A\)"),
        ("NVIDIA-GH200-144G-HBM3e", "is a superchip"),
        ("a2-megagpu-16g", "sixteen A100"),
    ],
)
def test_what_is_no_part_has_the_nearest_name_or_says_what_it_is(name: str, hint: str) -> None:
    with pytest.raises(UnknownHardwareError, match=hint):
        catalogue_hardware(name)


def test_the_table_names_parts_of_the_catalogue_once_each_with_a_source() -> None:
    table = read_yaml(TABLE.read_text("utf-8"))
    sources = set(table["sources"])
    parts = set(table["names"]) | {part for each in table["instances"].values() for part in each}
    assert parts <= set(accelerators())
    assert {source for names in table["names"].values() for source in names} <= sources
    assert set(table["instances"]) <= sources
    # Reads every name, and raises where one stands for two parts.
    assert set(hardware_names().values()) == set(accelerators())
    assert not {name for name in table["other_parts"] if name in hardware_names()}
    assert set(table["taken_for"]) <= set(accelerators())


def test_no_instance_has_more_accelerators_than_a_host() -> None:
    """A host of the catalogue is the largest machine of its part."""
    larger = [
        each.name
        for each in instance_types().values()
        if each.accelerators > accelerators()[each.hardware].accelerators_per_host
    ]
    assert larger == []


def fleet_file(folder: Path, hardware: str, more: str = "") -> Path:
    path = folder / "fleet.yaml"
    path.write_text(
        f"version: 1\n{more}"
        f"offers: [{{name: rent, hardware: {hardware}, rent_usd_per_accelerator_hour: 2}}]\n"
        f"pools: [{{name: own, hardware: {hardware}, hosts: 2, owned: {{capex_usd_per_host: 200000}}}}]\n"
        "services:\n  - {name: chat, model: llama3.1-8b, workload: {input_tokens: 9, output_tokens: 9}, "
        f"slo: {{tpot_ms: 50}}, demand: 1, hardware: [{hardware}]}}\n",
        encoding="utf-8",
    )
    return path


def test_a_fleet_file_may_use_any_name(tmp_path: Path) -> None:
    for name in ("p5.48xlarge", "NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3", "h100"):
        fleet = load_fleet(fleet_file(tmp_path, name))
        assert set(fleet.hardware) == {"H100-SXM"}
        assert {each.hardware for each in (*fleet.pools, *fleet.offers)} == {"H100-SXM"}
        assert fleet.services[0].allowed_hardware == ("H100-SXM",)


def test_a_name_that_the_file_defines_is_its_own(tmp_path: Path) -> None:
    own = "hardware: {h100: {like: h200, all_in_w: 900}}\n"
    fleet = load_fleet(fleet_file(tmp_path, "h100", own))
    assert set(fleet.hardware) == {"h100"}
    part, base = fleet.hardware["h100"].accelerator, accelerators()["H200-SXM"]
    assert part is not None
    assert part.hbm_gib == base.hbm_gib


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("H100 80GB", "H100-SXM"),
        ("NVIDIA H100 80GB PCIe", "H100-PCIe"),
        ("AMD MI300X 192GB", "MI300X"),
        ("NVIDIA B200 180GB", "B200-SXM"),
    ],
)
def test_the_hint_is_of_the_same_series(name: str, meant: str) -> None:
    """The memory that two parts share tells less than what they are called."""
    assert hardware_hint(name).endswith(f"did you mean {meant!r}?")


def test_an_unknown_name_in_a_fleet_file_has_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no hardware 'H100-SMX'.*did you mean 'H100-SXM'"):
        load_fleet(fleet_file(tmp_path, "H100-SMX"))


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (
            "hardware: g6e.12xlarge, hosts: 2",
            "pools.p.hardware: g6e.12xlarge has 4 L40S, a host of them 8; name L40S-x4, with "
            "`hardware: {L40S-x4: {like: L40S, accelerators_per_host: 4}}`",
        ),
        ("hardware: p5.48xlarge, hosts: 2", ""),
        # A size that the file gives the part, and a kind of the file's own.
        ("hardware: g6e.24xlarge, hosts: 2", "L40S: {accelerators_per_host: 4}"),
        ("hardware: g6e.12xlarge, hosts: 2", "g6e.12xlarge: {like: L40S, accelerators_per_host: 4}"),
    ],
)
def test_a_machine_of_another_size_is_no_host_of_its_part(tmp_path: Path, pool: str, said: str) -> None:
    own = f"hardware: {{{said}}}\n" if said.endswith("4}") else ""
    path = tmp_path / "fleet.yaml"
    path.write_text(
        f"version: 1\nname: f\n{own}pools: [{{name: p, {pool}, owned: {{capex_usd_per_host: 100000}}}}]\n"
        "services: [{name: s, model: llama3.1-8b, workload: {input_tokens: 100, output_tokens: 100}, "
        "slo: {tpot_ms: 50}, demand: 1}]\n",
        encoding="utf-8",
    )
    if own or not said:
        (held,) = load_fleet(path).pools
        assert held.accelerators_per_host == (4 if own else 8)
        return
    with pytest.raises(InputError) as refused:
        load_fleet(path)
    assert said in str(refused.value)
