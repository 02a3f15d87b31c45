"""Every broken file gives exactly its messages, each with its place, and all of them at once."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
name: small
horizon: {periods: [2027Q1, 2027Q2]}
regions:
  us-east: {power_kw: 4000, pue: 1.15, energy_usd_per_kwh: 0.07}
  eu-west: {}
pools:
  - {name: east-h200, region: us-east, hardware: H200-SXM, hosts: 4, owned: {capex_usd_per_host: 300000}}
offers:
  - {name: h100-rent, hardware: H100-SXM, regions: [us-east, eu-west], rent_usd_per_accelerator_hour: 1.99}
services:
  - name: chat
    model: llama3-70b
    workload: {input_tokens: 2048, output_tokens: 150}
    slo: {ttft_ms: 350, tpot_ms: 30}
    demand: {us-east: {2027Q1: 9, 2027Q2: 10}}
policy: {unmet: forbid}
"""

TOP_LEVEL = (
    "version, name, horizon, regions, hardware, pools, offers, services, service_defaults, calibration, "
    "kv_links, policy, budget, finance, day_shapes, uncertainty, objective, scenarios, overrides"
)

# What is broken, the text that is replaced, its replacement, and the messages without the file's name.
BROKEN: list[tuple[str, str, str, list[str]]] = [
    (
        "wrong type",
        "hosts: 4",
        "hosts: four",
        [
            "8:67: pools.east-h200.hosts: must be a whole number, not 'four'",
        ],
    ),
    (
        "fraction of a host",
        "hosts: 4",
        "hosts: 4.5",
        [
            "8:67: pools.east-h200.hosts: must be a whole number, not 4.5",
        ],
    ),
    (
        "boolean for a number",
        "power_kw: 4000",
        "power_kw: true",
        [
            "5:23: regions.us-east.power_kw: must be a number, not true",
        ],
    ),
    (
        "yes is text",
        "ttft_ms: 350",
        "ttft_ms: yes",
        [
            "15:20: services.chat.slo.ttft_ms: must be a number, not 'yes'",
        ],
    ),
    (
        "number for a name",
        "name: small",
        "name: 7",
        [
            "2:7: name: must be text, not 7",
        ],
    ),
    (
        "version in quotes",
        "version: 1",
        "version: '1'",
        [
            "1:10: version: must not be '1'; write 1 without quotes",
        ],
    ),
    (
        "the hour after the last one",
        "2027Q2]}\nregions",
        "2027Q2], first_slice_utc_hour: 24}\nregions",
        [
            "3:60: horizon.first_slice_utc_hour: must be less than 24, not 24",
        ],
    ),
    (
        "year without quotes",
        "version: 1",
        "version: 1\nfinance: {currency: {code: EUR, usd_per_unit: 1.08, as_of: 2026, source: bank}}",
        [
            "2:60: finance.currency.as_of: must be text, not 2026; write '2026'",
        ],
    ),
    (
        "number for a growth",
        "demand: {us-east",
        "growth: 0.05\n    demand: {us-east",
        [
            (
                "16:13: services.chat.growth: must be text, not 0.05; "
                "such as 10 %/quarter, 3 %/month or -5 %/year"
            ),
        ],
    ),
    (
        "name of two lines",
        "name: chat",
        'name: "a\\nb"',
        [
            r"12:11: services[0].name: is not a name: 'a\nb'; names hold no blanks, commas, brackets or bars",
        ],
    ),
    (
        "half a year",
        "2027Q1, 2027Q2]",
        "2027H1, 2027H2]",
        [
            (
                "3:21: horizon.periods[0]: 2027H1 is neither a quarter nor a month; "
                "write 2027Q1, 2027-01 or FY27-Q1"
            ),
            (
                "16:24: services.chat.demand.us-east.2027Q1: '2027Q1' is no period; allowed: 2027H1, 2027H2; "
                "did you mean '2027H1'?"
            ),
            (
                "16:35: services.chat.demand.us-east.2027Q2: '2027Q2' is no period; allowed: 2027H1, 2027H2; "
                "did you mean '2027H2'?"
            ),
        ],
    ),
    (
        "list for a mapping",
        "slo: {ttft_ms: 350, tpot_ms: 30}",
        "slo: [350, 30]",
        [
            "15:10: services.chat.slo: must be a mapping, not a list",
        ],
    ),
    (
        "mapping for a list",
        "regions: [us-east, eu-west]",
        "regions: us-east",
        [
            "10:52: offers.h100-rent.regions: must be a list, not 'us-east'",
        ],
    ),
    (
        "unknown key, near miss",
        "ttft_ms: 350",
        "tfft_ms: 350",
        [
            (
                "15:11: services.chat.slo.tfft_ms: unknown key; allowed: ttft_ms, tpot_ms, ttft_p50_ms, "
                "ttft_p90_ms, ttft_p95_ms, ttft_p99_ms, tpot_p50_ms, tpot_p90_ms, tpot_p95_ms, tpot_p99_ms, "
                "goodput_ratio; did you mean 'ttft_ms'?"
            ),
        ],
    ),
    (
        "unknown block",
        "pools:",
        "pool:",
        [
            f"7:1: pool: unknown key; allowed: {TOP_LEVEL}; did you mean 'pools'?",
        ],
    ),
    (
        "unknown key without a match",
        "name: small",
        "colour: red",
        [
            f"2:1: colour: unknown key; allowed: {TOP_LEVEL}",
        ],
    ),
    (
        "key of another block",
        "name: small",
        "currency: EUR",
        [
            f"2:1: currency: unknown key; allowed: {TOP_LEVEL}; see finance.currency",
        ],
    ),
    (
        "duplicate key",
        "name: small",
        "name: small\nname: large",
        [
            "3:1: name: the key 'name' is given twice; first given in line 2",
        ],
    ),
    (
        "duplicate key, nested",
        "hosts: 4",
        "hosts: 4, hosts: 5",
        [
            "8:70: pools[0].hosts: the key 'hosts' is given twice; first given in line 8",
        ],
    ),
    (
        "negative demand",
        "2027Q1: 9",
        "2027Q1: -9",
        [
            "16:32: services.chat.demand.us-east.2027Q1: must be 0, or from 1e-06 to 1e+09 requests/s, "
            "not -9",
        ],
    ),
    (
        "demand that is text",
        "2027Q1: 9",
        "2027Q1: many",
        [
            "16:32: services.chat.demand.us-east.2027Q1: is not a quantity of demand: 'many'; such as 120, "
            "3.2 M requests/day, 40 k output tokens/s or 2 M users x 6 requests/day",
        ],
    ),
    (
        "demand in an unknown region",
        "demand: {us-east:",
        "demand: {us-eest:",
        [
            (
                "16:14: services.chat.demand.us-eest: 'us-eest' is no region or period; allowed: us-east, "
                "eu-west, 2027Q1, 2027Q2; did you mean 'us-east'?"
            ),
        ],
    ),
    (
        "demand in an unknown period",
        "2027Q2: 10",
        "2027Q3: 10",
        [
            (
                "16:35: services.chat.demand.us-east.2027Q3: there is no period '2027Q3'; allowed: 2027Q1, "
                "2027Q2; did you mean '2027Q2'?"
            ),
        ],
    ),
    (
        "demand without a region",
        "{us-east: {2027Q1: 9, 2027Q2: 10}}",
        "9",
        [
            (
                "16:13: services.chat.demand: it is not said for which region this demand is; give it by "
                "region: us-east, eu-west"
            ),
        ],
    ),
    (
        "missing demand",
        "    demand: {us-east: {2027Q1: 9, 2027Q2: 10}}\n",
        "",
        [
            "12:5: services.chat: needs exactly one of demand, follows, offline",
        ],
    ),
    (
        "missing price of an offer",
        ", rent_usd_per_accelerator_hour: 1.99",
        "",
        [
            (
                "10:5: offers.h100-rent: has no price: needs exactly one of capex_usd_per_host, "
                "rent_usd_per_accelerator_hour, price_book; the price book knows for H100-SXM in USD per "
                "accelerator-hour: hyperscaler 1.17, neocloud 1.55, rental_3y 1.78, on_demand_low 1.99, "
                "on_demand_high 5"
            ),
        ],
    ),
    (
        "two prices of an offer",
        "rent_usd_per_accelerator_hour: 1.99",
        "price_book: rental_3y, capex_usd_per_host: 1e5",
        [
            (
                "10:5: offers.h100-rent: has 2 prices (capex_usd_per_host, price_book): needs exactly one of "
                "capex_usd_per_host, rent_usd_per_accelerator_hour, price_book; the price book knows for "
                "H100-SXM in USD per accelerator-hour: hyperscaler 1.17, neocloud 1.55, rental_3y 1.78, "
                "on_demand_low 1.99, on_demand_high 5"
            ),
        ],
    ),
    (
        "unknown column of the price book",
        "rent_usd_per_accelerator_hour: 1.99",
        "price_book: rental_5y",
        [
            (
                "10:84: offers.h100-rent.price_book: the price book has no 'rental_5y' for H100-SXM; allowed:"
                " hyperscaler, neocloud, rental_3y, on_demand_low, on_demand_high; did you mean 'rental_3y'?"
            ),
        ],
    ),
    (
        "missing price of a pool",
        ", owned: {capex_usd_per_host: 300000}",
        "",
        [
            (
                "8:5: pools.east-h200: has no price: needs exactly one of owned {capex_usd_per_host}, rented "
                "{usd_per_accelerator_hour}; the price book knows for H200-SXM in USD per accelerator-hour: "
                "hyperscaler 1.22, neocloud 1.59, rental_3y 2.05, on_demand_low 2.5, on_demand_high 7"
            ),
        ],
    ),
    (
        "unknown hardware",
        "hardware: H200-SXM",
        "hardware: H200_SMX",
        [
            (
                "8:50: pools.east-h200.hardware: there is no hardware 'H200_SMX'; allowed: one of 40 names; "
                "did you mean 'H200-SXM'?"
            ),
        ],
    ),
    (
        "unknown region of a pool",
        "region: us-east,",
        "region: us-esat,",
        [
            (
                "8:31: pools.east-h200.region: there is no region 'us-esat'; allowed: us-east, eu-west; did "
                "you mean 'us-east'?"
            ),
        ],
    ),
    (
        "unknown model",
        "model: llama3-70b",
        "model: llama3-71b",
        [
            (
                "13:12: services.chat.model: there is no model 'llama3-71b' in the catalogue; allowed: an id "
                "or alias of the model catalogue, or the path of a config.json; did you mean 'llama3-70b'?"
            ),
        ],
    ),
    (
        "missing workload",
        "    workload: {input_tokens: 2048, output_tokens: 150}\n",
        "",
        [
            ("12:5: services.chat.workload: is missing; such as {input_tokens: 2048, output_tokens: 150}"),
        ],
    ),
    (
        "percentile SLO",
        "ttft_ms: 350",
        "ttft_p97_ms: 350",
        [
            (
                "15:11: services.chat.slo.ttft_p97_ms: unknown key; allowed: ttft_ms, tpot_ms, ttft_p50_ms, "
                "ttft_p90_ms, ttft_p95_ms, ttft_p99_ms, tpot_p50_ms, tpot_p90_ms, tpot_p95_ms, tpot_p99_ms, "
                "goodput_ratio; did you mean 'ttft_p99_ms'?"
            ),
        ],
    ),
    (
        "not a number",
        "power_kw: 4000",
        "power_kw: .nan",
        [
            (
                "5:23: regions.us-east.power_kw: .nan is not a finite number; give a number, or quote it if "
                "it is a name"
            ),
        ],
    ),
    (
        "nan without a dot",
        "ttft_ms: 350",
        "ttft_ms: NaN",
        [
            (
                "15:20: services[0].slo.ttft_ms: NaN is not a finite number; give a number, or quote it if it"
                " is a name"
            ),
        ],
    ),
    (
        "infinity",
        "power_kw: 4000",
        "power_kw: .inf",
        [
            (
                "5:23: regions.us-east.power_kw: .inf is not a finite number; give a number, or quote it if "
                "it is a name"
            ),
        ],
    ),
    (
        "too large a number",
        "power_kw: 4000",
        "power_kw: 1e400",
        [
            "5:23: regions.us-east.power_kw: 1e400 is too large for a number",
        ],
    ),
    (
        "PUE below one",
        "pue: 1.15",
        "pue: 0.9",
        [
            "5:34: regions.us-east.pue: must be at least 1, not 0.9",
        ],
    ),
    (
        "missing PUE",
        "pue: 1.15, ",
        "",
        [
            (
                "5:12: regions.us-east.pue: is missing, and power, energy or carbon counts here; facility "
                "power over IT power, such as 1.15; 1.0 where both are metered at the hosts"
            ),
        ],
    ),
    (
        "unknown choice",
        "unmet: forbid",
        "unmet: forbd",
        [
            ("17:17: policy.unmet: must not be 'forbd'; allowed: forbid, penalise; did you mean 'forbid'?"),
        ],
    ),
    (
        "gap between quarters",
        "[2027Q1, 2027Q2]",
        "[2027Q1, 2027Q3]",
        [
            "3:29: horizon.periods[1]: 2027Q3 does not follow 2027Q1; the next quarter is 2027Q2",
            (
                "16:35: services.chat.demand.us-east.2027Q2: there is no period '2027Q2'; allowed: 2027Q1, "
                "2027Q3; did you mean '2027Q3'?"
            ),
        ],
    ),
    (
        "period twice",
        "[2027Q1, 2027Q2]",
        "[2027Q1, 2027Q1]",
        [
            "3:29: horizon.periods[1]: the period '2027Q1' is given twice",
            (
                "16:35: services.chat.demand.us-east.2027Q2: there is no period '2027Q2'; allowed: 2027Q1; "
                "did you mean '2027Q1'?"
            ),
        ],
    ),
    (
        "name twice",
        "policy:",
        (
            "  - {name: chat, model: llama3-8b, workload: {input_tokens: 1, output_tokens: 1}, demand: "
            "{us-east: 1}}\npolicy:"
        ),
        [
            ("17:12: services.chat.name: the name 'chat' is given twice in services; first given in line 12"),
        ],
    ),
    (
        "price for one of two periods",
        "energy_usd_per_kwh: 0.07",
        "energy_usd_per_kwh: {2027Q1: 0.07}",
        [
            (
                "5:60: regions.us-east.energy_usd_per_kwh: has no value for 2027Q2; give every period of the "
                "horizon"
            ),
        ],
    ),
    (
        "neither model nor engines",
        "    model: llama3-70b\n",
        "",
        [
            "12:5: services.chat: needs exactly one of model, engines",
        ],
    ),
    (
        "missing engine table",
        "    model: llama3-70b\n",
        "    engines: rates.csv\n",
        [
            ("13:14: services.chat.engines: there is no file rates.csv; the path is relative to this file"),
        ],
    ),
    (
        "no services",
        "services:\n",
        "services: []\nx:\n",
        [
            "11:11: services: must not be empty",
            f"12:1: x: unknown key; allowed: {TOP_LEVEL}",
        ],
    ),
    (
        "wrong version",
        "version: 1",
        "version: 2",
        [
            "1:10: version: must not be 2; allowed: 1",
        ],
    ),
    (
        "missing version",
        "version: 1\n",
        "",
        [
            "1:1: version: is missing",
        ],
    ),
    (
        "max of the wrong unit",
        "rent_usd",
        "max_accelerators: 8, rent_usd",
        [
            "10:72: offers.h100-rent.max_accelerators: does not go with `per: host`; use max_hosts",
        ],
    ),
    (
        "power cap out of range",
        "pools:",
        "hardware: {H200-SXM: {power_cap_w: 200}}\npools:",
        [
            (
                "7:36: hardware.H200-SXM.power_cap_w: must be from 350 to 700 W, not 200; the clock follows "
                "the cap only in that range"
            ),
        ],
    ),
    (
        "like an unknown part",
        "pools:",
        "hardware: {fast: {like: H2000-SXM}}\npools:",
        [
            (
                "7:25: hardware.fast.like: the catalogue has no part 'H2000-SXM'; allowed: one of 40 names; "
                "did you mean 'H200-SXM'?"
            ),
        ],
    ),
    (
        "no power figure",
        "hardware: H200-SXM",
        "hardware: TPU-v5p",
        [
            (
                "8:50: pools.east-h200.hardware: TPU-v5p has no power figure, and power, energy or carbon "
                "counts in us-east; give hardware.TPU-v5p.all_in_w"
            ),
        ],
    ),
    (
        "name with a blank",
        "name: east-h200",
        "name: east h200",
        [
            (
                "8:12: pools.east h200.name: is not a name: 'east h200'; "
                "names hold no blanks, commas, brackets or bars"
            ),
        ],
    ),
    (
        "hardware that a shop names",
        "hardware: H200-SXM",
        "hardware: Quadro GV100",
        ["8:50: pools.east-h200.hardware: there is no hardware 'Quadro GV100'; allowed: one of 40 names"],
    ),
    (
        "currency and day in words",
        "policy: {unmet: forbid}",
        "policy: {unmet: forbid}\n"
        "finance: {currency: {code: EURO, usd_per_unit: 1, as_of: yesterday, source: me}}",
        [
            "18:28: finance.currency.code: must be three capital letters such as EUR, not 'EURO'",
            (
                "18:58: finance.currency.as_of: must be a year, a month or a day, such as 2026, 2026-08 or "
                "2026-08-14, not 'yesterday'"
            ),
        ],
    ),
    (
        "unclosed bracket",
        "policy: {unmet: forbid}",
        "policy: {unmet: forbid",
        [
            "18:1: not valid YAML: while parsing a flow mapping did not find expected ',' or '}'",
        ],
    ),
    (
        "tab for indentation",
        "  us-east:",
        "\tus-east:",
        [
            (
                "5:1: not valid YAML: while scanning for the next token found character that cannot start any"
                " token; indent with spaces; YAML takes no tabs"
            ),
        ],
    ),
    (
        "no-break space",
        "name: small",
        "name:\u00a0small",
        [
            (
                "3:1: not valid YAML: while scanning a simple key could not find expected ':'; "
                "a space there is a no-break space (U+00A0); type a plain one"
            ),
        ],
    ),
    (
        "no space after the colon",
        "name: small",
        "name:small",
        [
            (
                "3:1: not valid YAML: while scanning a simple key could not find expected ':'; "
                "write `key: value`, with a space after the colon"
            ),
        ],
    ),
    (
        "key further in than the one above",
        "name: small",
        "name: small\n  title: small",
        [
            (
                "3:8: not valid YAML: mapping values are not allowed in this context; "
                "write one `key: value` a line, and quote text that holds `: `"
            ),
        ],
    ),
    (
        "key further out than the one above",
        "    model: llama3-70b",
        "   model: llama3-70b",
        [
            (
                "13:4: not valid YAML: while parsing a block collection did not find expected '-' indicator; "
                "items of a list begin in the same column, with `- `"
            ),
        ],
    ),
    (
        "quotes around a number",
        "hosts: 4",
        'hosts: "4"',
        [
            "8:67: pools.east-h200.hosts: must be a whole number, not '4'; leave out the quotes",
        ],
    ),
    (
        "percent",
        "tpot_ms: 30}",
        "tpot_ms: 30}\n    headroom: 7.5 %",
        [
            "16:15: services.chat.headroom: must be a number, not '7.5 %'; write 0.075 for 7.5 %",
        ],
    ),
    (
        "spaces in a number",
        "power_kw: 4000",
        "power_kw: 4\u202f000",
        [
            "5:23: regions.us-east.power_kw: must be a number, not '4\\u202f000'; write 4000",
        ],
    ),
    (
        "unit in a value",
        "power_kw: 4000",
        "power_kw: 4000 kW",
        [
            (
                "5:23: regions.us-east.power_kw: must be a number, not '4000 kW'; "
                "write the number alone; the name of the key has its unit"
            ),
        ],
    ),
    (
        "currency in a value",
        "rent_usd_per_accelerator_hour: 1.99",
        "rent_usd_per_accelerator_hour: $1.99",
        [
            (
                "10:103: offers.h100-rent.rent_usd_per_accelerator_hour: must be a number, not '$1.99'; "
                "write the number alone; the name of the key has its unit"
            ),
        ],
    ),
    (
        "decimal comma",
        "capex_usd_per_host: 300000",
        "capex_usd_per_host: '300.000,50'",
        [
            (
                "8:98: pools.east-h200.owned.capex_usd_per_host: must be a number, not '300.000,50'; "
                "decimals have a point, and thousands no comma"
            ),
        ],
    ),
    (
        "tag",
        "name: small",
        "name: !!python/name:os.system small",
        [
            "2:7: name: the tag tag:yaml.org,2002:python/name:os.system is not allowed",
        ],
    ),
    (
        "tag of YAML itself",
        "name: small",
        "name: !!str small",
        [
            "2:7: name: the tag !!str is not allowed; quote the value: a value is read as what it looks like",
        ],
    ),
    (
        "no-break space in a key",
        "name: small",
        "name: small\nhorizon\u00a0: {}",
        [
            "3:1: horizon\u00a0: unknown key; a space there is a no-break space (U+00A0); type a plain one",
        ],
    ),
    (
        "alias without an anchor",
        "name: small",
        "name: *small",
        [
            "2:7: name: the alias *small has no anchor &small before it",
        ],
    ),
    (
        "alias within its own anchor",
        "policy: {unmet: forbid}",
        "policy: &p {unmet: *p}",
        [
            "17:20: policy.unmet: the alias *p is inside the value it refers to",
        ],
    ),
    (
        "two documents",
        "policy:",
        "---\npolicy:",
        [
            "17:1: a file holds one document; remove the line `---`",
        ],
    ),
    (
        "key that is a list",
        "name: small",
        "[a, b]: small",
        [
            "2:1: a key must be plain text",
        ],
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make messages hold the file's bare name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def messages_of(text: str) -> list[str]:
    path = Path("fleet.yaml")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_fleet(path)
    assert str(caught.value).split("\n") == [str(issue) for issue in caught.value.issues]
    return [str(issue).removeprefix("fleet.yaml:") for issue in caught.value.issues]


def test_the_unbroken_file_is_fine(folder: Path) -> None:
    Path("fleet.yaml").write_text(FLEET, encoding="utf-8")
    assert load_fleet("fleet.yaml").name == "small"


@pytest.mark.parametrize(
    ("old", "new", "expected"), [case[1:] for case in BROKEN], ids=[c[0] for c in BROKEN]
)
def test_a_broken_file_says_what_is_wrong_and_where(
    folder: Path, old: str, new: str, expected: list[str]
) -> None:
    assert old in FLEET
    assert messages_of(FLEET.replace(old, new, 1)) == expected


def test_a_headroom_that_reads_like_a_percentage_is_warned_of(folder: Path) -> None:
    """A headroom of 10, meant as 10 %, planned eleven times the demand without a word."""
    for share, said in (("0.1", ()), ("10", ("plans 11 times the demand; for 10 % more, write 0.1",))):
        text = FLEET.replace("tpot_ms: 30}", f"tpot_ms: 30}}\n    headroom: {share}", 1)
        Path("fleet.yaml").write_text(text, encoding="utf-8")
        warnings = [each for each in load_fleet("fleet.yaml").warnings if "headroom" in each]
        assert [each.partition("headroom: ")[2] for each in warnings] == list(said)


def test_all_mistakes_of_a_file_come_at_once(folder: Path) -> None:
    text = FLEET
    for old, new in [
        ("hosts: 4", "hosts: four"),
        ("ttft_ms: 350", "tfft_ms: 350"),
        ("hardware: H100-SXM", "hardware: H100-SMX"),
        ("2027Q1: 9", "2027Q1: -9"),
        ("pue: 1.15", "pue: 0.9"),
        ("unmet: forbid", "unmet: never"),
    ]:
        text = text.replace(old, new, 1)
    places = [message.split(": ")[1] for message in messages_of(text)]
    assert places == [
        "regions.us-east.pue",
        "pools.east-h200.hosts",
        "offers.h100-rent.hardware",
        "services.chat.slo.tfft_ms",
        "services.chat.demand.us-east.2027Q1",
        "policy.unmet",
    ]


def test_a_mistake_in_a_block_is_not_repeated_where_the_block_is_named(folder: Path) -> None:
    text = FLEET.replace("pue: 1.15", "pue: low", 1).replace("hosts: 4", "hosts: four", 1)
    assert messages_of(text) == [
        "5:34: regions.us-east.pue: must be a number, not 'low'",
        "8:67: pools.east-h200.hosts: must be a whole number, not 'four'",
    ]


OUT_OF_RANGE = """\
version: 1
pools: [{name: own, hardware: H100-SXM, hosts: 100000000, owned: {capex_usd_per_host: 1e12}}]
offers: [{name: rent, hardware: H100-SXM, rent_usd_per_accelerator_hour: 1e9}]
budget: {tco_usd: 1e18}
services:
  - {name: chat, engines: good.csv, slo: {}, demand: 1e-8}
  - {name: more, engines: good.csv, slo: {}, demand: 1e12}
  - {name: fast, engines: rates.csv, slo: {}, demand: 1}
"""


def test_numbers_that_the_model_does_not_take_are_refused_where_they_stand(tmp_path: Path) -> None:
    header = "phase,hardware,accelerators_per_replica,config,requests_per_s"
    (tmp_path / "rates.csv").write_text(f"{header}\naggregated,H100-SXM,1,one,1e12\n")
    (tmp_path / "good.csv").write_text(f"{header}\naggregated,H100-SXM,1,one,10\n")
    path = tmp_path / "fleet.yaml"
    path.write_text(OUT_OF_RANGE)
    with pytest.raises(InputError) as caught:
        load_fleet(path)
    found = {str(issue).removeprefix(f"{tmp_path}/") for issue in caught.value.issues}
    rates = "must be 0, or from 1e-06 to 1e+09 requests/s, not"
    assert found >= {
        "fleet.yaml:2:48: pools.own.hosts: must be at most 1e+07, not 100000000",
        "fleet.yaml:2:87: pools.own.owned.capex_usd_per_host: must be at most 1e+09, not 1000000000000.0",
        "fleet.yaml:3:74: offers.rent.rent_usd_per_accelerator_hour: must be at most 100000, "
        "not 1000000000.0",
        "fleet.yaml:4:19: budget.tco_usd: must be at most 1e+12, not 1e+18",
        f"fleet.yaml:6:54: services.chat.demand: {rates} 1e-08",
        f"fleet.yaml:7:54: services.more.demand: {rates} 1e+12",
        f"rates.csv:2:27: requests_per_s: {rates} 1e12; 0 says that it cannot",
    }
