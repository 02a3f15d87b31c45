"""Engine tables: what is read, and every mistake with its line and column."""
# ruff: noqa: E501 - messages stand whole, as a user sees them

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
offers:
  - {name: g1, hardware: G1, per: accelerator, rent_usd_per_accelerator_hour: 1.01}
  - {name: g2, hardware: G2, per: accelerator, rent_usd_per_accelerator_hour: 3.67}
hardware: {G1: {}, G2: {accelerators_per_host: 8}}
services:
  - {name: chat, engines: rates.csv, demand: {a: 6, b: 3}}
"""
TABLE = """\
phase,hardware,accelerators_per_replica,config,class,requests_per_s,ttft_ms
aggregated,G1,1,small,a,2,120
aggregated,G1,1,small,b,0,
aggregated,G2,1,"big, fast",a,20,60.5
aggregated,G2,1,"big, fast",b,20,70
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fleet_of(table: str | bytes, fleet: str = FLEET) -> Fleet:
    Path("fleet.yaml").write_text(fleet, encoding="utf-8")
    Path("rates.csv").write_bytes(table.encode("utf-8") if isinstance(table, str) else table)
    return load_fleet("fleet.yaml")


def messages_of(table: str | bytes, fleet: str = FLEET) -> list[str]:
    with pytest.raises(InputError) as caught:
        fleet_of(table, fleet)
    return [str(issue) for issue in caught.value.issues]


def test_a_table_with_classes() -> None:
    fleet = fleet_of(TABLE)
    (service,) = fleet.services
    assert service.model is None
    assert service.engines is not None
    assert service.engines["requests_per_s"].tolist() == [2, 0, 20, 20]
    assert service.engines["config"].tolist() == ["small", "small", "big, fast", "big, fast"]
    assert service.engines["ttft_ms"].isna().tolist() == [False, True, False, False]
    assert service.engines["power_kw"].isna().all()
    assert [(c.name, c.share, c.input_tokens) for c in service.classes] == [
        ("a", 6 / 9, None),
        ("b", 3 / 9, None),
    ]
    assert set(fleet.hardware) == {"G1", "G2"}
    assert set(fleet.input_hashes) == {"fleet.yaml", "rates.csv"}


def test_a_table_without_classes_serves_one() -> None:
    table = "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,G1,1,x,2\n"
    (service,) = fleet_of(table, FLEET.replace("{a: 6, b: 3}", "9")).services
    assert service.engines is not None
    assert service.engines["class"].tolist() == ["all"]
    assert [each.name for each in service.classes] == ["all"]


def test_lengths_may_be_stated_beside_the_table() -> None:
    workload = "workload: {classes: {b: {input_tokens: 1, output_tokens: 2}, a: {input_tokens: 3, output_tokens: 4}}}, "
    (service,) = fleet_of(TABLE, FLEET.replace("demand", f"{workload}demand")).services
    assert [(each.name, each.input_tokens) for each in service.classes] == [("b", 1), ("a", 3)]
    assert service.demand.peak["default", "now", "a"] == 6
    wrong = workload.replace("b:", "c:")
    assert messages_of(TABLE, FLEET.replace("demand", f"{wrong}demand")) == [
        "fleet.yaml:7:48: services.chat.workload: the classes (c, a) are not those of the engine table (a, b); "
        "they are matched by name"
    ]


def test_power_may_come_from_the_table_alone() -> None:
    metered = FLEET.replace("services:", "regions: {eu: {pue: 1.2, energy_usd_per_kwh: 0.1}}\nservices:")
    table = TABLE.replace("ttft_ms", "power_kw").replace(",\n", ",0.4\n")
    assert fleet_of(table, metered).hardware["G1"].power_w_per_accelerator is None
    assert messages_of(TABLE, metered) == [
        "fleet.yaml:3:26: offers.g1.hardware: G1 has no power figure, and power, energy or carbon counts in eu; "
        "give hardware.G1.all_in_w",
        "fleet.yaml:4:26: offers.g2.hardware: G2 has no power figure, and power, energy or carbon counts in eu; "
        "give hardware.G2.all_in_w",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "G1,1,small,a,2,",
            "G1,1,small,a,-2,",
            [
                "rates.csv:2:25: requests_per_s: must be 0, or from 1e-06 to 1e+09 requests/s, not -2; 0 says that it cannot"
            ],
        ),
        (
            "G1,1,small,a,2,",
            "G1,1,small,a,nan,",
            ["rates.csv:2:25: requests_per_s: must be a finite number, not 'nan'"],
        ),
        (
            "G1,1,small,a,2,",
            "G1,1,small,a,1e999,",
            ["rates.csv:2:25: requests_per_s: must be a finite number, not '1e999'"],
        ),
        ("G1,1,small,a,2,", "G1,1,small,a,,", ["rates.csv:2:25: requests_per_s: is missing"]),
        (
            "G1,1,small,a",
            "G1,0,small,a",
            ["rates.csv:2:15: accelerators_per_replica: must be a whole number of at least 1, not 0"],
        ),
        (
            "G1,1,small,a",
            "G1,1.5,small,a",
            ["rates.csv:2:15: accelerators_per_replica: must be a whole number of at least 1, not 1.5"],
        ),
        (
            "G1,1,small,a",
            "G1,2,small,a",
            ["rates.csv:3:1: accelerators_per_replica: differs from the 2 of the same config in line 2"],
        ),
        (
            "G1,1,small,b",
            "G1,1,small,a",
            [
                "rates.csv:3:1: the same phase, hardware, config and class as in an earlier row; first given in line 2"
            ],
        ),
        (
            "aggregated,G1,1,small,a",
            "agregated,G1,1,small,a",
            [
                "rates.csv:2:1: phase: there is no phase 'agregated'; allowed: aggregated, prefill, decode; did you mean 'aggregated'?"
            ],
        ),
        (
            "aggregated,G1,1,small,a",
            "aggregated,H200-SMX,1,small,a",
            [
                "rates.csv:2:12: hardware: there is no hardware 'H200-SMX'; allowed: one of 42 names; did you mean 'H200-SXM'?"
            ],
        ),
        (
            "requests_per_s",
            "request_per_s",
            [
                "rates.csv:1:1: requests_per_s: the column is missing",
                "rates.csv:1:54: request_per_s: unknown column; allowed: phase, hardware, accelerators_per_replica, config, class, requests_per_s, ttft_ms, tpot_ms, power_kw, kv_gb_per_request; did you mean 'requests_per_s'?",
            ],
        ),
        ("ttft_ms\n", "phase\n", ["rates.csv:1:69: phase: the column is given twice"]),
        ("small,b,0,", "small,b,0", ["rates.csv:3:1: the row has 6 fields, the header 7"]),
        (",a,20,60.5", ",a,20,-1", ["rates.csv:4:34: ttft_ms: must be at least 0, not -1"]),
    ],
)
def test_mistakes_have_their_place(old: str, new: str, expected: list[str]) -> None:
    assert messages_of(TABLE.replace(old, new, 1)) == expected


def test_all_mistakes_come_at_once() -> None:
    table = TABLE.replace("small,a,2", "small,a,x").replace("G2,1,", "G3,1,")
    assert [message.split(" ")[0] for message in messages_of(table)] == [
        "rates.csv:2:25:",
        "rates.csv:4:12:",
        "rates.csv:5:12:",
    ]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("", "rates.csv:1:1: the file is empty; columns: phase, hardware"),
        ("phase,hardware\n", "rates.csv:1:1: the file has a header but no rows; columns: phase, hardware"),
        (b"a\x00", "fleet.yaml:7:27: services.chat.engines: rates.csv is not UTF-8 text"),
        (
            "phase,hardware\n".encode("utf-16"),
            "fleet.yaml:7:27: services.chat.engines: rates.csv cannot be read: it is UTF-16 text; save it as UTF-8",
        ),
    ],
)
def test_files_that_are_no_tables(table: str | bytes, expected: str) -> None:
    (message,) = messages_of(table)
    assert message.startswith(expected)


def test_prefill_without_decode_serves_nobody() -> None:
    table = TABLE.replace("aggregated", "prefill")
    assert messages_of(table) == [
        "rates.csv:1:1: phase: there are prefill rows but no decode rows; serving needs both"
    ]


def test_demand_names_the_classes_of_the_table() -> None:
    (message,) = messages_of(TABLE, FLEET.replace("{a: 6, b: 3}", "{a: 6, c: 3}"))
    assert message.startswith(
        "fleet.yaml:7:53: services.chat.demand.c: there is no request class 'c'; allowed: a, b"
    )
