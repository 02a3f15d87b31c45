"""The block `hardware` and power caps."""

from pathlib import Path

import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.inventory.power import idle_power_w, power_capped
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
pools: [{{name: p, hardware: {name}, hosts: 2, rented: {{usd_per_accelerator_hour: 2}}}}]
services:
  - {{name: chat, model: llama3-8b, workload: {{input_tokens: 9, output_tokens: 9}}, demand: 1}}
hardware: {{{name}: {{{figures}}}}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fleet_with(name: str, figures: str) -> Fleet:
    Path("fleet.yaml").write_text(FLEET.format(name=name, figures=figures), encoding="utf-8")
    return load_fleet("fleet.yaml")


def test_a_power_cap_slows_the_clock_by_its_cube_root() -> None:
    h200 = accelerators()["H200-SXM"]
    capped = power_capped(h200, 560)
    # 560 of 700 W: the cube root of 0.8 is 0.92832.
    assert capped.bf16_tflops == pytest.approx(989 * 0.928318, rel=1e-6)
    assert capped.fp8_tflops == pytest.approx(1979 * 0.928318, rel=1e-6)
    assert capped.fp4_tflops is None
    assert (capped.hbm_gb_per_s, capped.scale_up_gb_per_s, capped.hbm_gib) == (4800, 450, 139.8)
    # The host's share stays as it is.
    assert (capped.tdp_w, capped.all_in_w) == (560, 1370 - 140)
    # What was measured at the full clock is kept, and scaled.
    assert (capped.measured_system, capped.as_measured.bf16_tflops) == ("h200_sxm", 989)
    assert power_capped(h200, 700).measured_figures is None


@pytest.mark.parametrize("cap_w", [0, 349, 701])
def test_a_cap_outside_the_range_of_the_rule(cap_w: float) -> None:
    with pytest.raises(ValueError, match="outside the range"):
        power_capped(accelerators()["H200-SXM"], cap_w)


def test_a_part_like_another() -> None:
    fleet = fleet_with("mine", "like: H200-SXM, power_cap_w: 600, accelerators_per_host: 4")
    part = fleet.hardware["mine"]
    assert part.accelerator is not None
    assert (part.name, part.accelerators_per_host, part.power_w_per_accelerator) == ("mine", 4, 1270)
    assert part.accelerator.sources[-2:] == (
        "fleet file: accelerators_per_host 4",
        "capped at 600 W of 700 W: clock times 0.950 (cube-root rule)",
    )


def test_a_larger_domain_than_a_mesh_is_taken_as_a_switch() -> None:
    for figures, is_mesh in (("hbm_gib: 128", True), ("scale_up_accelerators: 64", False)):
        part = fleet_with("mine", f"like: MI300X, {figures}").hardware["mine"].accelerator
        assert part is not None
        assert part.scale_up_mesh is is_mesh


@pytest.mark.parametrize(
    ("figures", "domain", "links"),
    [
        ("like: H100-SXM, accelerators_per_host: 1", 1, 450.0),
        ("like: L40S, accelerators_per_host: 4", 4, None),
        # Links of seven to the others; three of them are left.
        ("like: MI300X, accelerators_per_host: 4", 4, 448 * 3 / 7),
        # A rack or a pod joins hosts of any size, and a larger host says nothing of its links.
        ("like: GB200-NVL72, accelerators_per_host: 2", 72, 900.0),
        ("like: TPU-v6e, accelerators_per_host: 4", 256, None),
        ("like: H100-SXM, accelerators_per_host: 16", 8, 450.0),
        ("like: H100-SXM, accelerators_per_host: 4, scale_up_accelerators: 8", 8, 450.0),
    ],
)
def test_no_links_join_smaller_hosts(figures: str, domain: int, links: float | None) -> None:
    part = fleet_with("mine", figures).hardware["mine"].accelerator
    assert part is not None
    assert part.scale_up_accelerators == domain
    assert links is None or part.scale_up_gb_per_s == pytest.approx(links)


def test_a_change_to_a_catalogue_part_needs_no_like() -> None:
    part = fleet_with("H200-SXM", "hbm_gib: 120").hardware["H200-SXM"].accelerator
    assert part is not None
    assert (part.hbm_gib, part.measured_system) == (120, "h200_sxm")


def test_other_speed_keeps_what_was_measured_to_be_scaled() -> None:
    fleet = fleet_with("fast", "like: H200-SXM, hbm_gb_per_s: 6000, power_cap_w: 690")
    part = fleet.hardware["fast"].accelerator
    assert part is not None
    assert (part.hbm_gb_per_s, part.measured_system) == (6000, "h200_sxm")
    measured = accelerators()["H200-SXM"]
    assert part.measured_figures == measured.speed_figures
    assert part.as_measured.hbm_gb_per_s == 4800
    assert fleet.warnings == (
        "hardware.fast: hbm_gb_per_s of its own: times measured on H200-SXM are scaled by the ratio of "
        "rooflines and count as extrapolated",
    )


@pytest.mark.parametrize("figures", ["hbm_gb_per_s: 4800", "bf16_tflops: 989, scale_up_accelerators: 8"])
def test_the_catalogue_s_own_figures_change_nothing(figures: str) -> None:
    fleet = fleet_with("H200-SXM", figures)
    assert fleet.hardware["H200-SXM"].accelerator == accelerators()["H200-SXM"]
    assert fleet.warnings == ()


def test_a_name_is_enough_for_engine_tables() -> None:
    part = fleet_with("G2", "accelerators_per_host: 8").hardware["G2"]
    assert (part.accelerators_per_host, part.accelerator, part.power_w_per_accelerator) == (8, None, None)
    assert fleet_with("G2", "").hardware["G2"].accelerators_per_host == 1
    assert fleet_with("G2", "all_in_w: 500").hardware["G2"].power_w_per_accelerator == 500


def test_a_new_part_in_full() -> None:
    figures = "bf16_tflops: 500, hbm_gib: 64, hbm_gb_per_s: 2000, scale_up_gb_per_s: 200, tdp_w: 500"
    fleet = fleet_with("own", f"{figures}, accelerators_per_host: 4")
    part = fleet.hardware["own"]
    assert part.accelerator is not None
    assert (part.accelerator.scale_up_accelerators, part.power_w_per_accelerator) == (4, 950)
    assert fleet.warnings == ("hardware.own: names no roofline profile: computed with 'carried-over'",)
    assert fleet_with("own", f"{figures}, profile: nvidia-fitted").warnings == ()


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (
            "hbm_gib: 64, tdp_w: 500",
            "hardware.own: a new part also needs bf16_tflops, hbm_gb_per_s, scale_up_gb_per_s; "
            "or name a catalogue part with `like`",
        ),
        ("power_cap_w: 500", "hardware.own.power_cap_w: a cap needs a part to change; name it with `like`"),
        (
            "like: TPU-v5p, power_cap_w: 500",
            "hardware.own.power_cap_w: the catalogue has no board power for this part; give tdp_w as well",
        ),
        (
            "like: H200-SXM, profile: nvidia-fited",
            "hardware.own.profile: there is no roofline profile 'nvidia-fited'; allowed: nvidia-fitted",
        ),
        ("like: H200-SXM, speed: 3", "hardware.own.speed: unknown key"),
    ],
)
def test_mistakes(figures: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        fleet_with("own", figures)
    assert str(caught.value).split(" ", 1)[1].startswith(expected)


def test_a_part_brings_its_own_operator_tables(folder: Path) -> None:
    (folder / "own.csv").write_text("operator\n", encoding="utf-8")
    fleet = fleet_with("H200-SXM", "optables: own.csv")
    part = fleet.hardware["H200-SXM"].accelerator
    assert part is not None
    assert part.operator_tables == ("own.csv",)
    assert part.measured_system == "h200_sxm"
    assert "own.csv" in fleet.input_hashes


@pytest.mark.parametrize(
    ("figures", "words"),
    [("optables: none.csv, like: H200-SXM", "cannot be read"), ("optables: none.csv", "needs the figures")],
)
def test_operator_tables_that_cannot_be_used(figures: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fleet_with("mine", figures)


def test_a_calibration_is_a_file_beside_the_fleet(folder: Path) -> None:
    (folder / "own.yaml").write_text("version: 1\n", encoding="utf-8")
    text = FLEET.format(name="H200-SXM", figures="hbm_gib: 100")
    Path("fleet.yaml").write_text(text + "calibration: own.yaml\n", encoding="utf-8")
    fleet = load_fleet("fleet.yaml")
    assert fleet.calibration == Path("own.yaml")
    assert "own.yaml" in fleet.input_hashes
    Path("fleet.yaml").write_text(text + "calibration: none.yaml\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"fleet\.yaml:6:14: calibration: none\.yaml cannot be read"):
        load_fleet("fleet.yaml")


def test_idle_power_is_the_catalogues_or_its_rule() -> None:
    idle_w = {name: idle_power_w(part) for name, part in accelerators().items()}
    # The card's own 70 W, and 15 % of the 670 W of its share of the host.
    assert idle_w["H100-SXM"] == pytest.approx(70 + 0.15 * (1370 - 700))
    assert idle_w["GB200-NVL72"] == 250
    # Nothing is known but the board power: 15 % of the all-in power that is derived from it.
    assert idle_w["MI325X"] == pytest.approx(0.15 * 1.9 * 1000)
    assert idle_w["TPU-v5p"] == 0


@pytest.mark.parametrize(
    ("name", "figures", "idle_w"),
    [
        ("H100-SXM", "idle_w: 0", 0),
        ("mine", "like: H100-SXM, idle_w: 123.5", 123.5),
        ("tables-only", "accelerators_per_host: 4, all_in_w: 800, idle_w: 90", 90),
        ("tables-only", "accelerators_per_host: 4, all_in_w: 800", 120),
        ("tables-only", "accelerators_per_host: 4", 0),
        # A cap does not reach what runs nothing.
        ("MI325X", "power_cap_w: 800", 0.15 * 1900),
        # 220 W less the 300 W of the cap were an idle power of -80 W, which more hosts save.
        ("mine", "like: H100-SXM, all_in_w: 220, power_cap_w: 400", 70),
    ],
)
def test_idle_power_of_ones_own(name: str, figures: str, idle_w: float) -> None:
    assert fleet_with(name, figures).hardware[name].idle_w_per_accelerator == pytest.approx(idle_w)


def test_nothing_draws_more_idle_than_busy() -> None:
    with pytest.raises(InputError, match=r"hardware\.H100-SXM\.idle_w.*cannot draw 1371 W"):
        fleet_with("H100-SXM", "idle_w: 1371")


@pytest.mark.parametrize(
    ("name", "figures", "part"),
    [
        ("mine", "like: H100-SXM, accelerators_per_host: 4, all_in_w: 1300", "H100-SXM"),
        ("mine", "like: H100-SXM, power_cap_w: 600", "H100-SXM"),
        ("mine", "like: H100-SXM, hbm_gib: 96", None),
        ("H100-SXM", "hbm_gib: 96", "H100-SXM"),
    ],
)
def test_hosts_of_another_size_have_the_same_part(name: str, figures: str, part: str | None) -> None:
    assert fleet_with(name, figures).hardware[name].part == part
