"""Values that are no such thing, or out of range, give exactly their messages."""

from pathlib import Path

from tests.fleet.resolve.broken_files import Broken, cases, check_messages

BROKEN: list[Broken] = [
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
        "PUE below one",
        "pue: 1.15",
        "pue: 0.9",
        [
            "5:34: regions.us-east.pue: must be at least 1, not 0.9",
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
]


@cases(BROKEN)
def test_a_broken_file_says_what_is_wrong_and_where(
    folder: Path, old: str, new: str, expected: list[str]
) -> None:
    check_messages(old, new, expected)
