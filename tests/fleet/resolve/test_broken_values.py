"""Values of a wrong type or out of range give exactly their messages."""

from pathlib import Path

from tests.fleet.resolve.broken_files import BrokenTarget, cases, check_messages

BROKEN: list[BrokenTarget] = [
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
        "year of two digits",
        "version: 1",
        "version: 1\nfinance: {currency: {code: EUR, usd_per_unit: 1.08, as_of: 26, source: bank}}",
        [
            (
                "2:60: finance.currency.as_of: must be a year, a month or a day, such as 2026, 2026-08 or "
                "2026-08-14, not '26'"
            ),
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
            (
                r"12:11: services[0].name: is not a name: 'a\nb'; names contain no blanks, commas, brackets "
                "or bars"
            ),
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
        "demand in quotes",
        "2027Q1: 9",
        '2027Q1: "9"',
        [
            "16:32: services.chat.demand.us-east.2027Q1: is not a quantity of demand: '9'; "
            "leave out the quotes",
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
        ],
    ),
    (
        "period twice",
        "[2027Q1, 2027Q2]",
        "[2027Q1, 2027Q1]",
        [
            "3:29: horizon.periods[1]: the period '2027Q1' is given twice",
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
                "names contain no blanks, commas, brackets or bars"
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
    (
        "quarter in another spelling",
        "2027Q1, 2027Q2]",
        "2027-q1, Q2.2027]",
        [
            "3:21: horizon.periods[0]: 2027-q1 is neither a quarter nor a month; write 2027Q1",
        ],
    ),
    (
        "quarter with a blank",
        "2027Q1, 2027Q2]",
        "Q1 2027, Q2 2027]",
        [
            "3:21: horizon.periods[0]: is not a name: 'Q1 2027'; write 2027Q1",
            "3:30: horizon.periods[1]: is not a name: 'Q2 2027'; write 2027Q2",
        ],
    ),
    (
        "month of one digit",
        "2027Q1, 2027Q2]",
        "2027-1]",
        [
            "3:21: horizon.periods[0]: 2027-1 is neither a quarter nor a month; write 2027-01",
        ],
    ),
    (
        "fiscal year of four digits",
        "2027Q1, 2027Q2]",
        "FY2027Q3]",
        [
            "3:21: horizon.periods[0]: FY2027Q3 is neither a quarter nor a month; write FY27-Q3",
        ],
    ),
    (
        "share in per cent",
        "policy: {unmet: forbid}",
        "policy: {max_share_per_pool: 90}",
        [
            "17:30: policy.max_share_per_pool: must be at most 1, not 90; write 0.9 for 90 %",
        ],
    ),
    (
        "minus of a word processor",
        "eu-west: {}",
        "eu-west: {utc_offset_hours: \u22125}",
        [
            (
                "6:31: regions.eu-west.utc_offset_hours: must be a number, not '\u22125'; "
                "write -5, with a plain hyphen"
            ),
        ],
    ),
    (
        "one region to serve from",
        "    model: llama3-70b\n",
        "    model: llama3-70b\n    serve_from: eu-west\n",
        [
            "14:17: services.chat.serve_from: must not be 'eu-west'; write any, or a list such as [eu-west]",
        ],
    ),
    (
        "offset of a region that cannot be read",
        "  eu-west: {}\n",
        ("  eu-west: {utc_offset_hours: CET}\nday_shapes: {office: {by_local_hour: {0: 0.2, 8: 1}}}\n"),
        [
            "6:31: regions.eu-west.utc_offset_hours: must be a number, not 'CET'",
            (
                "7:38: day_shapes.office.by_local_hour: the local time is unknown in us-east; "
                "give regions.us-east.utc_offset_hours"
            ),
        ],
    ),
    (
        "shares beyond 1",
        "workload: {input_tokens: 2048, output_tokens: 150}",
        (
            "workload: {classes: {a: {share: 0.7, input_tokens: 9, output_tokens: 9}, "
            "b: {share: 0.4, input_tokens: 9, output_tokens: 9}}}"
        ),
        [
            "14:25: services.chat.workload.classes: the shares add up to 1.1, not 1",
        ],
    ),
]


@cases(BROKEN)
def test_a_broken_file_says_what_is_wrong_and_where(
    folder: Path, old: str, new: str, expected: list[str]
) -> None:
    check_messages(old, new, expected)
