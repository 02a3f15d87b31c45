"""The packaged catalogue: complete, sane, and every figure with its source."""

import dataclasses
import re

import pytest

from fleetplan.fleet.catalog import accelerators, efficiency_profiles, price_book, price_book_columns
from fleetplan.fleet.inventory.power import all_in_power_w, idle_power_w

NAMES = [
    "A100-SXM-80GB",
    "A100-SXM-40GB",
    "A10G",
    "RTX-3090",
    "H100-SXM",
    "H800-SXM",
    "H20-SXM",
    "H100-PCIe",
    "H100-NVL",
    "GH200",
    "H200-SXM",
    "B200-SXM",
    "B300-SXM",
    "GB200-NVL72",
    "GB300-NVL72",
    "L40S",
    "L4",
    "RTX-4090",
    "MI300X",
    "MI325X",
    "MI350X",
    "MI355X",
    "Gaudi2",
    "Gaudi3",
    "TPU-v5e",
    "TPU-v5p",
    "TPU-v6e",
    "TPU-7x",
    "Trainium2",
    "GPU-A",
    "GPU-B",
    "GPU-C",
    "NextGen",
    "NextGen-Pod",
    "RTX-PRO-6000-Server",
    "RTX-5090",
    "GB10",
    "Arc-Pro-B60",
    "Arc-Pro-B70",
    "LPU-v1",
]

MEASURED = {
    "A100-SXM-80GB": "a100_sxm",
    "A100-SXM-40GB": "a100_sxm",
    "A10G": "a100_sxm",
    "RTX-3090": "a100_sxm",
    "H100-SXM": "h100_sxm",
    "H800-SXM": "h100_sxm",
    "H20-SXM": "h100_sxm",
    "H100-PCIe": "h100_sxm",
    "H100-NVL": "h100_sxm",
    "GH200": "h100_sxm",
    "H200-SXM": "h200_sxm",
    "B200-SXM": "b200_sxm",
    "B300-SXM": "b300_sxm",
    "GB200-NVL72": "gb200",
    "GB300-NVL72": "gb300",
    "L40S": "l40s",
    "L4": "l40s",
    "RTX-4090": "l40s",
    "RTX-PRO-6000-Server": "rtx_pro_6000_server",
    "RTX-5090": "rtx_pro_6000_server",
    "GB10": "rtx_pro_6000_server",
    "Arc-Pro-B60": "b60",
    "Arc-Pro-B70": "b60",
}


def test_every_promised_part_is_there() -> None:
    assert list(accelerators()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_in_their_units(name: str) -> None:
    part = accelerators()[name]
    assert part.name == name
    assert 60 < part.bf16_tflops < 5_000
    # Narrower types are never slower.
    peaks = [part.bf16_tflops, part.fp8_tflops or part.bf16_tflops]
    peaks.append(part.fp4_tflops or peaks[-1])
    assert peaks == sorted(peaks)
    if part.sram_only:
        assert 0.1 < part.hbm_gib < 100
        assert part.hbm_gb_per_s > 20_000
    else:
        assert 10 < part.hbm_gib < 400
        assert 250 < part.hbm_gb_per_s < 20_000
    assert 20 < part.scale_up_gb_per_s < 2_000
    assert part.scale_out_gb_per_s is None or 1 < part.scale_out_gb_per_s <= 400
    assert part.scale_out_gb_per_s is None or part.scale_out_gb_per_s <= part.scale_up_gb_per_s
    assert part.tdp_w is None or 70 <= part.tdp_w < 2_000
    assert part.all_in_w is None or part.tdp_w is None or part.tdp_w < part.all_in_w < 3 * part.tdp_w
    assert part.idle_board_w is None or part.tdp_w is None or 20 < part.idle_board_w < 0.2 * part.tdp_w
    full_w = all_in_power_w(part)
    assert idle_power_w(part) == 0 if full_w is None else 0.1 * full_w < idle_power_w(part) < 0.3 * full_w
    assert part.scale_up_accelerators % part.accelerators_per_host == 0
    assert part.lifecycle in ("preview", "stable", "deprecated", "end-of-life")
    assert part.measured_system == MEASURED.get(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_has_sources(name: str) -> None:
    part = accelerators()[name]
    assert part.sources
    assert part.efficiency.source
    assert all(len(source) > 10 for source in part.sources)
    # A part without measurements says that its constants were not fitted on it.
    if part.measured_system is None and part.vendor != "anonymised":
        assert "carried over" in part.efficiency.source


def test_the_paper_parts_are_those_of_its_table_4() -> None:
    figures = {
        name: (part.fp8_tflops, part.hbm_gb_per_s, part.scale_up_gb_per_s, part.scale_out_gb_per_s)
        for name, part in accelerators().items()
        if part.vendor == "anonymised"
    }
    assert figures == {
        "GPU-A": (1000, 2400, 450, 50),
        "GPU-B": (1000, 4800, 450, 50),
        "GPU-C": (850, 5200, 448, 50),
        "NextGen": (1800, 7700, 900, 50),
        "NextGen-Pod": (1800, 7700, 900, 100),
    }
    assert accelerators()["NextGen-Pod"].scale_up_accelerators == 64


def test_roofline_constants_are_shares_and_times() -> None:
    for profile in efficiency_profiles().values():
        for field in dataclasses.fields(profile):
            value = getattr(profile, field.name)
            if field.name.endswith("_ratio"):
                assert 0 < value <= 1
            elif field.name.endswith("_us"):
                assert 0 <= value < 1000


def test_power_is_known_or_derived_from_the_board() -> None:
    h200, l40s = accelerators()["H200-SXM"], accelerators()["L40S"]
    assert all_in_power_w(h200) == 1370
    assert all_in_power_w(l40s) == pytest.approx(350 * 1.9)
    assert all_in_power_w(accelerators()["TPU-v5p"]) is None


def test_every_price_is_dated_and_sourced() -> None:
    book = price_book()
    assert {"H100-SXM", "H200-SXM", "B200-SXM", "GB200-NVL72", "MI300X"} <= set(book)
    for name, columns in book.items():
        assert name in accelerators()
        for column, price in columns.items():
            assert column in price_book_columns()
            assert 0.1 < price.usd_per_accelerator_hour < 20
            assert re.fullmatch(r"20\d\d(-\d\d)?", price.as_of)
            assert price.source
