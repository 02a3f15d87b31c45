"""From a fleet file to the resolved fleet."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet, RequestClass
from fleetplan.scenarios.load import load_fleet

# The example of the file format, whole.
CONTRACT = """\
version: 1
name: q1-2027
horizon: {periods: [2027Q1, 2027Q2, 2027Q3, 2027Q4]}
regions:
  us-east: {power_kw: 4000, pue: 1.15, energy_usd_per_kwh: 0.07}
pools:
  - name: east-h200
    region: us-east
    hardware: H200-SXM
    hosts: 40
    owned: {capex_usd_per_host: 300000, in_service: 2025Q3, life_quarters: 16}
offers:
  - name: b200-buy
    hardware: B200-SXM
    regions: [us-east]
    capex_usd_per_host: 420000
    lead_time_quarters: 1
    max_hosts: {2027Q2: 20}
  - name: h100-rent
    hardware: H100-SXM
    regions: [us-east]
    per: accelerator
    rent_usd_per_accelerator_hour: 1.99
    max_accelerators: 512
hardware:
  H200-600W: {like: H200-SXM, power_cap_w: 600}
services:
  - name: assistant
    model: meta-llama/Meta-Llama-3.1-70B
    precision: {weights: fp8, kv: fp8}
    workload: {input_tokens: 2048, output_tokens: 150, context_tokens: 8192}
    slo: {ttft_ms: 350, tpot_ms: 30}
    demand: {us-east: {2027Q1: 900}}
    headroom: 0.15
    priority: 1
    runtimes: [disaggregated, aggregated]
policy:
  reserve_hosts_per_pool: 1
  max_configs_per_service_region: 2
  kv_transfer: same-region
  transition_usd_per_accelerator: 40
  unmet: forbid
budget: {capex_usd: {2027Q1: 5e6}, tco_usd: 80e6}
objective: tco
"""

# The least that a fleet file needs, with a place for more.
SMALL = """\
version: 1
pools: [{{name: p, hardware: H200-SXM, hosts: 2, rented: {{usd_per_accelerator_hour: 2}}}}]
services: [{{name: chat, model: llama3-8b, {service}}}]
{more}
"""
WORKLOAD = "workload: {input_tokens: 100, output_tokens: 10}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(text: str) -> Fleet:
    Path("fleet.yaml").write_text(text, encoding="utf-8")
    return load_fleet("fleet.yaml")


def small(service: str = f"{WORKLOAD}, demand: 5", more: str = "") -> Fleet:
    return loaded(SMALL.format(service=service, more=more))


def refused(service: str = f"{WORKLOAD}, demand: 5", more: str = "") -> list[str]:
    with pytest.raises(InputError) as caught:
        small(service, more)
    return [str(issue).split(" ", 1)[1] for issue in caught.value.issues]


def test_the_example_of_the_format() -> None:
    fleet = loaded(CONTRACT)
    assert (fleet.name, fleet.objective) == ("q1-2027", "tco")
    assert fleet.periods == ("2027Q1", "2027Q2", "2027Q3", "2027Q4")
    (region,) = fleet.regions
    assert (region.name, region.power_kw, region.pue) == ("us-east", (4000.0,) * 4, 1.15)
    assert region.energy_usd_per_kwh == (0.07,) * 4
    (pool,) = fleet.pools
    assert (pool.hosts, pool.accelerators_per_host, pool.accelerators) == (40, 8, 320)
    assert pool.rented is None
    assert pool.owned is not None
    assert (pool.owned.capex_usd_per_host, pool.owned.in_service, pool.owned.life_periods) == (
        3e5,
        "2025Q3",
        16,
    )
    buy, rent = fleet.offers
    assert (buy.unit, buy.accelerators_per_unit, buy.capex_usd_per_host) == ("host", 8, 420000)
    assert (buy.max_units, buy.lead_time_periods, buy.price_source) == ((0, 20, 0, 0), 1, "fleet.yaml:16")
    assert buy.rent_usd_per_accelerator_hour is None
    assert (rent.unit, rent.accelerators_per_unit, rent.max_units) == ("accelerator", 1, (512,) * 4)
    assert (rent.rent_usd_per_accelerator_hour, rent.energy_included) == ((1.99,) * 4, False)
    (service,) = fleet.services
    assert service.classes == (RequestClass("all", 1.0, 2048, 150, 8192),)
    assert (service.precision.weights, service.precision.kv) == ("fp8", "fp8")
    assert (service.ttft_ms, service.tpot_ms, service.headroom, service.priority) == (350, 30, 0.15, 1)
    assert service.demand.peak == {("us-east", period, "all"): 900.0 for period in fleet.periods}
    assert fleet.policy.max_configs_per_service_region == 2
    assert fleet.budget.capex_usd_by_period == (5e6, None, None, None)
    assert (fleet.budget.capex_usd, fleet.budget.tco_usd) == (None, 80e6)
    assert list(fleet.hardware) == ["H200-SXM", "B200-SXM", "H100-SXM"]
    assert list(fleet.input_hashes) == ["fleet.yaml"]


def test_what_has_no_effect_is_said() -> None:
    assert loaded(CONTRACT).warnings == (
        "hardware.H200-600W: power cap: times measured on H200-SXM are scaled by the ratio of rooflines and "
        "count as extrapolated",
        "offers.b200-buy.max_hosts: has no value for 2027Q1, 2027Q3, 2027Q4: no supply there",
        "services.assistant.demand: none is given for 2027Q2, 2027Q3, 2027Q4: the period before is repeated",
        "budget.capex_usd: has no value for 2027Q2, 2027Q3, 2027Q4: no limit there",
    )


def test_loading_twice_gives_the_same_fleet() -> None:
    assert loaded(CONTRACT) == loaded(CONTRACT)


def test_defaults() -> None:
    fleet = small()
    assert (fleet.name, fleet.periods, fleet.warnings) == ("fleet", ("now",), ())
    (region,) = fleet.regions
    assert (region.name, region.power_kw, region.energy_usd_per_kwh) == ("default", None, None)
    (service,) = fleet.services
    assert (service.precision.weights, service.precision.kv, service.framework) == ("bf16", "bf16", "vllm")
    assert (service.ttft_ms, service.tpot_ms, service.allowed_hardware) == (None, None, None)
    assert service.runtimes == ("disaggregated", "aggregated")
    assert service.demand.peak == {("default", "now", "all"): 5.0}
    assert (fleet.policy.reserve_hosts_per_pool, fleet.policy.unmet) == (0, "forbid")


TWO = "horizon: {periods: [a, b]}\nregions: {eu: {}, us: {}}"
PLACED = SMALL.replace("name: p,", "name: p, region: eu,")


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        ("{eu: 3, us: 4}", [3, 3, 4, 4]),
        ("{eu: {a: 1, b: 2}}", [1, 2, 0, 0]),
        ("{a: {eu: 1, us: 2}, b: {us: 3, eu: 4}}", [1, 4, 2, 3]),
        ("{eu: 1, us: {a: 5, b: 6}}", [1, 1, 5, 6]),
        ("{eu: {low: 1, mid: 2, high: 9}}", [9, 9, 0, 0]),
    ],
)
def test_levels_of_demand_are_recognised_by_their_keys(demand: str, expected: list[float]) -> None:
    fleet = loaded(PLACED.format(service=f"{WORKLOAD}, demand: {demand}", more=TWO))
    values = fleet.services[0].demand.peak
    assert [values[key] for key in [("eu", "a", "all"), ("eu", "b", "all")]] == expected[:2]
    assert [values[key] for key in [("us", "a", "all"), ("us", "b", "all")]] == expected[2:]


def test_periods_left_out_are_warned_about() -> None:
    fleet = small(f"{WORKLOAD}, demand: {{b: 7}}", "horizon: {periods: [a, b, c]}")
    assert list(fleet.services[0].demand.peak.values()) == [0, 7, 7]
    assert fleet.warnings == (
        "services.chat.demand: none is given before b: planned as 0 until then",
        "services.chat.demand: none is given for c: the period before is repeated",
    )


def test_the_figures_of_an_estimate_rise() -> None:
    assert refused(f"{WORKLOAD}, demand: {{low: 3, mid: 2}}") == [
        "services.chat.demand: must increase from low to mid to high"
    ]
    assert refused(f"{WORKLOAD}, demand: {{low: 3, high: 4}}") == [
        "services.chat.demand.mid: is missing; an estimate is {low, mid, high}"
    ]


CLASSES = (
    "classes: {{short: {{{}input_tokens: 100, output_tokens: 10}}, "
    "long: {{{}input_tokens: 9000, output_tokens: 10}}}}"
)


def test_classes_split_demand_by_their_shares() -> None:
    workload = CLASSES.format("share: 0.75, ", "share: 0.25, ")
    (service,) = small(f"workload: {{{workload}}}, demand: 8").services
    assert service.classes == (
        RequestClass("short", 0.75, 100, 10, None),
        RequestClass("long", 0.25, 9000, 10, None),
    )
    assert list(service.demand.peak.values()) == [6, 2]


def test_demand_by_class_gives_the_shares() -> None:
    (service,) = small(f"workload: {{{CLASSES.format('', '')}}}, demand: {{long: 1, short: 3}}").services
    assert [each.share for each in service.classes] == [0.75, 0.25]
    assert list(service.demand.peak.values()) == [3, 1]


@pytest.mark.parametrize(
    ("shares", "demand", "expected"),
    [
        (
            ("share: 0.5, ", "share: 0.4, "),
            "8",
            "services.chat.workload.classes: the shares add up to 0.9, not 1",
        ),
        (
            ("share: 0.5, ", ""),
            "8",
            "services.chat.workload.classes: has no share for long; every class needs one, or none has",
        ),
        (
            ("share: 0.5, ", "share: 0.5, "),
            "{short: 4, long: 4}",
            "services.chat.workload.classes: shares are given, and the demand by class as well; "
            "keep one of the two",
        ),
        (
            ("", ""),
            "8",
            "services.chat.demand: the split of this demand over the classes is missing; "
            "give it by class (short, long), or give every class a share",
        ),
    ],
)
def test_unclear_shares(shares: tuple[str, str], demand: str, expected: str) -> None:
    messages = refused(f"workload: {{{CLASSES.format(*shares)}}}, demand: {demand}")
    assert messages[0] == expected


def test_a_context_holds_the_new_tokens() -> None:
    service = "workload: {input_tokens: 100, output_tokens: 10, context_tokens: 50}, demand: 5"
    assert refused(service) == [
        "services.chat.workload.context_tokens: 50 is less than the 100 input_tokens; "
        "the context includes the new tokens"
    ]


def test_network_time_must_leave_something_of_the_limit() -> None:
    assert refused(f"{WORKLOAD}, demand: 5, slo: {{ttft_ms: 100}}, network_latency_ms: 100") == [
        "services.chat.network_latency_ms: 100 ms leave nothing of the TTFT limit of 100 ms"
    ]


def test_a_config_file_is_found_beside_the_file_that_names_it(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "config.json").write_text("{}", encoding="utf-8")
    (folder / "sub" / "services.yaml").write_text(
        f"services: [{{name: own, model: config.json, {WORKLOAD}, demand: 1}}]", encoding="utf-8"
    )
    fleet = small(more="imports: [sub/services.yaml]")
    assert [service.model for service in fleet.services] == ["sub/config.json", "meta-llama/Llama-3.1-8B"]


def test_a_missing_config_file() -> None:
    with pytest.raises(InputError, match=r"fleet.yaml:3:32: .*there is no file x/config.json"):
        loaded(SMALL.format(service=f"{WORKLOAD}, demand: 1", more="").replace("llama3-8b", "x/config.json"))


def test_prices_from_the_book_include_energy() -> None:
    offers = "offers: [{name: o, hardware: H200-SXM, price_book: rental_3y}]"
    (offer,) = small(more=offers).offers
    assert offer.rent_usd_per_accelerator_hour == (2.05,)
    assert offer.energy_included
    assert offer.price_source.startswith("price book rental_3y: InferenceX-app@7fe6d62")
    assert offer.price_source.endswith("2026-08")
    (offer,) = small(more=offers.replace("rental_3y", "rental_3y, energy_included: false")).offers
    assert not offer.energy_included


def test_own_prices_extend_the_book() -> None:
    more = (
        "hardware: {H200-SXM: {price_usd_per_accelerator_hour: {contract: 1.5}}}\n"
        "offers: [{name: o, hardware: H200-SXM, price_book: contract}]"
    )
    (offer,) = small(more=more).offers
    assert offer.rent_usd_per_accelerator_hour == (1.5,)
    assert offer.price_source == "fleet file, hardware.H200-SXM.price_usd_per_accelerator_hour.contract"


def test_pools_of_single_accelerators() -> None:
    text = SMALL.format(service=f"{WORKLOAD}, demand: 5", more="").replace("hosts: 2", "accelerators: 12")
    (pool,) = loaded(text).pools
    assert (pool.hosts, pool.accelerators_per_host, pool.accelerators) == (12, 1, 12)


def test_owned_hosts_arrive_before_the_horizon() -> None:
    more = "horizon: {periods: [2027Q1]}"
    owned = "owned: {capex_usd_per_host: 1, in_service: 2027Q2}"
    text = SMALL.format(service=f"{WORKLOAD}, demand: 5", more=more)
    text = text.replace("rented: {usd_per_accelerator_hour: 2}", owned)
    with pytest.raises(
        InputError, match="2027Q2 is after the first period 2027Q1; hardware that arrives later is an offer"
    ):
        loaded(text)


def test_there_must_be_some_hardware() -> None:
    text = f"version: 1\nservices: [{{name: chat, model: llama3-8b, {WORKLOAD}, demand: 1}}]\n"
    with pytest.raises(InputError) as caught:
        loaded(text)
    assert str(caught.value) == (
        "fleet.yaml:1:1: there are no pools and no offers; a service needs hardware to run on"
    )


def test_a_part_that_is_not_out_yet_is_warned_about() -> None:
    fleet = small(more="offers: [{name: o, hardware: NextGen, rent_usd_per_accelerator_hour: 1}]")
    assert fleet.warnings == ("offers.o.hardware: NextGen is preview",)


def test_an_offer_that_comes_too_late_is_warned_about() -> None:
    late = "offers: [{name: o, hardware: H200-SXM, capex_usd_per_host: 1, lead_time_quarters: 1}]"
    assert small(more=late).warnings == (
        "offers.o.lead_time_quarters: nothing ordered arrives within the horizon",
    )


def test_power_does_not_matter_where_the_rent_holds_it() -> None:
    more = (
        "regions: {eu: {pue: 1.1, energy_usd_per_kwh: 0.1}}\n"
        "offers: [{name: o, hardware: TPU-v5p, rent_usd_per_accelerator_hour: 4, energy_included: true}]"
    )
    assert small(more=more).hardware["TPU-v5p"].power_w_per_accelerator is None
    limited = more.replace("pue: 1.1", "pue: 1.1, power_kw: 100")
    assert refused(more=limited) == [
        "offers.o.hardware: TPU-v5p has no power figure, and power, energy or carbon counts in eu; "
        "give hardware.TPU-v5p.all_in_w"
    ]
