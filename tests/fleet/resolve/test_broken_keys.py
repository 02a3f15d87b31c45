"""Keys that there are not or that are missing, and names that mean nothing, give exactly their messages."""

from pathlib import Path

from tests.fleet.resolve.broken_files import TOP_LEVEL, BrokenTarget, cases, check_messages

BROKEN: list[BrokenTarget] = [
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
            "10:52: offers.h100-rent.regions: must be a list, not 'us-east'; write [us-east]",
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
                "16:13: services.chat.demand: the region of this demand is missing; give it by "
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
                "rent_usd_per_accelerator_hour, price_book; the price book has for H100-SXM in USD per "
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
                "capex_usd_per_host, rent_usd_per_accelerator_hour, price_book; the price book has for "
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
                "{usd_per_accelerator_hour}; the price book has for H200-SXM in USD per accelerator-hour: "
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
        "missing PUE",
        "pue: 1.15, ",
        "",
        [
            (
                "5:12: regions.us-east.pue: is required because power, energy or carbon counts here; "
                "facility power over IT power, such as 1.15; 1.0 if both are metered at the hosts"
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
            "10:72: offers.h100-rent.max_accelerators: cannot be combined with `per: host`; use max_hosts",
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
        "hardware that a shop names",
        "hardware: H200-SXM",
        "hardware: Quadro GV100",
        ["8:50: pools.east-h200.hardware: there is no hardware 'Quadro GV100'; allowed: one of 40 names"],
    ),
    (
        "comma between thousands",
        "input_tokens: 2048",
        "input_tokens: 2,048",
        ["14:32: services.chat.workload.048: unknown key; thousands have no comma"],
    ),
    (
        "period as a key",
        "input_tokens: 2048",
        "input_tokens: 2048, 2027Q1: 5",
        [
            "14:36: services.chat.workload.2027Q1: unknown key; allowed: input_tokens, output_tokens, "
            "context_tokens, lengths, classes",
        ],
    ),
    (
        "comma before decimals",
        "input_tokens: 2048",
        "input_tokens: 2048,5",
        ["14:35: services.chat.workload.5: unknown key; decimals have a point, not a comma"],
    ),
]


@cases(BROKEN)
def test_a_broken_file_says_what_is_wrong_and_where(
    folder: Path, old: str, new: str, expected: list[str]
) -> None:
    check_messages(old, new, expected)
