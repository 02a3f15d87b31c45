"""Traffic of a service: limits under load, burstiness, and files of lengths."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import LatencyLimit, LengthBin, LengthHistogram, Service
from fleetplan.fleet.resolve.services.length_files import counted_bins
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
name: small
horizon: {periods: [2027Q1]}
regions: {east: {}}
offers: [{name: rent, hardware: H200-SXM, price_book: rental_3y}]
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 1000, output_tokens: 100}
    slo: {ttft_ms: 300, tpot_ms: 40}
    demand: 5
"""

HISTOGRAM = """\
input_from,input_to,output_from,output_to,share
1,101,1,11,0.5
101,1101,1,11,0.25
101,1101,11,211,0.25
"""


def resolved(tmp_path: Path, *changes: tuple[str, str], lengths: str | None = None) -> Service:
    text = FLEET
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "fleet.yaml").write_text(text, encoding="utf-8")
    if lengths is not None:
        (tmp_path / "lengths.csv").write_text(lengths, encoding="utf-8")
    fleet = load_fleet(tmp_path / "fleet.yaml")
    resolved.warnings = fleet.warnings  # type: ignore[attr-defined]
    return fleet.services[0]


def problems(tmp_path: Path, *changes: tuple[str, str], lengths: str | None = None) -> list[str]:
    with pytest.raises(InputError) as raised:
        resolved(tmp_path, *changes, lengths=lengths)
    return [str(issue).replace(f"{tmp_path}/", "") for issue in raised.value.issues]


def test_means_alone_leave_queueing_out(tmp_path: Path) -> None:
    service = resolved(tmp_path)
    assert service.traffic is None
    assert (service.ttft_ms, service.tpot_ms) == (300.0, 40.0)


def test_percentiles_hold_under_load_and_bound_the_mean(tmp_path: Path) -> None:
    service = resolved(tmp_path, ("ttft_ms: 300", "ttft_p95_ms: 500, ttft_p99_ms: 900"))
    assert service.traffic is not None
    assert service.traffic.ttft == (LatencyLimit(0.95, 500.0), LatencyLimit(0.99, 900.0))
    # A limit on the mean of another latency is still one without queueing.
    assert service.traffic.tpot == ()
    assert (service.ttft_ms, service.tpot_ms) == (500.0, 40.0)
    assert service.traffic.burstiness == 1.0
    assert any("Poisson arrivals" in warning for warning in resolved.warnings)  # type: ignore[attr-defined]


def test_traffic_makes_limits_on_means_hold_under_load(tmp_path: Path) -> None:
    service = resolved(tmp_path, ("    demand", "    traffic: {burstiness: 3}\n    demand"))
    assert service.traffic is not None
    assert service.traffic.burstiness == 3.0
    assert service.traffic.ttft == (LatencyLimit(None, 300.0),)
    assert service.traffic.tpot == (LatencyLimit(None, 40.0),)
    assert not resolved.warnings  # type: ignore[attr-defined]


def test_goodput_limits_single_requests(tmp_path: Path) -> None:
    service = resolved(tmp_path, ("tpot_ms: 40", "tpot_ms: 40, goodput_ratio: 0.97"))
    assert service.traffic is not None
    assert service.traffic.ttft == (LatencyLimit(0.97, 300.0),)
    assert service.traffic.tpot == (LatencyLimit(0.97, 40.0),)


def test_goodput_needs_a_limit(tmp_path: Path) -> None:
    found = problems(tmp_path, ("ttft_ms: 300, tpot_ms: 40", "goodput_ratio: 0.97"))
    assert found == [
        "fleet.yaml:10:26: services.chat.slo.goodput_ratio: needs ttft_ms or tpot_ms: it is the "
        "share of requests that must meet them"
    ]


def test_engine_tables_have_no_single_requests(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text(
        "phase,hardware,config,accelerators_per_replica,requests_per_s\naggregated,H200-SXM,x,1,5\n"
    )
    found = problems(tmp_path, ("model: llama3-8b", "engines: rates.csv"), ("ttft_ms", "ttft_p95_ms"))
    assert found == [
        "fleet.yaml:10:10: services.chat.slo: needs a model: an engine table has no single requests"
    ]


def test_limits_under_load_are_not_shared_with_a_follower(tmp_path: Path) -> None:
    follower = (
        "    demand: 5\n  - name: guard\n    model: llama3-8b\n"
        "    workload: {input_tokens: 10, output_tokens: 1}\n"
        "    follows: {service: chat, ratio: 1, ttft_share: 0.2}\n"
    )
    found = problems(tmp_path, ("ttft_ms", "ttft_p95_ms"), ("    demand: 5\n", follower))
    assert len(found) == 1
    assert "guard.follows.ttft_share: chat limits TTFT under load" in found[0]


def test_outside_time_counts_against_percentiles(tmp_path: Path) -> None:
    found = problems(tmp_path, ("ttft_ms", "ttft_p99_ms"), ("demand", "network_latency_ms: 400\n    demand"))
    assert "400 ms leave nothing of the TTFT limit of 300 ms" in found[0]


# Files of lengths -------------------------------------------------------------------------------------------


def test_means_come_from_the_file_where_none_are_given(tmp_path: Path) -> None:
    change = ("{input_tokens: 1000, output_tokens: 100}", "{lengths: lengths.csv}")
    service = resolved(tmp_path, change, lengths=HISTOGRAM)
    # 0.5 * 50.5 + 0.5 * 600.5 and 0.75 * 5.5 + 0.25 * 110.5
    assert (service.classes[0].input_tokens, service.classes[0].output_tokens) == (326, 32)
    assert service.traffic is not None
    assert not service.traffic.limits_load
    assert len(service.traffic.lengths_of("all").bins) == 3  # type: ignore[union-attr]


def test_means_that_are_given_stay(tmp_path: Path) -> None:
    change = ("output_tokens: 100}", "output_tokens: 100, lengths: lengths.csv}")
    service = resolved(tmp_path, change, lengths=HISTOGRAM)
    assert (service.classes[0].input_tokens, service.classes[0].output_tokens) == (1000, 100)


def test_classes_have_lengths_of_their_own(tmp_path: Path) -> None:
    classes = (
        "{classes: {short: {share: 0.5, input_tokens: 9, output_tokens: 9, lengths: lengths.csv}, "
        "long: {share: 0.5, input_tokens: 99, output_tokens: 9}}}"
    )
    service = resolved(tmp_path, ("{input_tokens: 1000, output_tokens: 100}", classes), lengths=HISTOGRAM)
    assert service.traffic is not None
    assert service.traffic.lengths_of("short") is not None
    assert service.traffic.lengths_of("long") is None


def test_a_trace_is_counted(tmp_path: Path) -> None:
    trace = "\narrival_s,input_tokens,output_tokens\n" + "0.1,100,10\n,,\n" * 3 + "0.2,1000,20\n"
    change = ("{input_tokens: 1000, output_tokens: 100}", "{lengths: lengths.csv}")
    service = resolved(tmp_path, change, lengths=trace)
    assert service.traffic is not None
    short, long = service.traffic.lengths_of("all").bins  # type: ignore[union-attr]
    assert (short.share, long.share) == (0.75, 0.25)
    assert short.input_from <= 100 < short.input_to
    assert long.input_from <= 1000 < long.input_to
    assert service.classes[0].input_tokens == pytest.approx(325, rel=0.15)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (HISTOGRAM.replace("0.5\n", "0.6\n"), "the shares in lengths.csv add up to 1.1, not 1"),
        (HISTOGRAM.replace("1,101,", "101,1,"), "lengths.csv:2:1: a bin needs 1 <= from < to"),
        (HISTOGRAM.replace("0.5\n", "half\n"), "lengths.csv:2:1: share: must be a number, not 'half'"),
        ("input_tokens,output_tokens\n1,2\n1,200,10\n", "lengths.csv:3:1: has 3 cells, the header 2"),
        ("input_tokens,output_tokens,input_tokens\n1,2,3\n", "input_tokens: the column is given twice"),
        ('input_tokens,output_tokens\n1,2\n1,"2\n1,2\n', "lengths.csv:3:1: a quote that begins in this line"),
        ("input_tokens;output_tokens\n1;2\n", "lengths.csv:1:1: fields are divided by semicolons; divide"),
        (
            "a,b\n1,2\n",
            "lengths.csv:1:1: the columns are those of neither a histogram nor a trace;",
        ),
        (
            "input_tokens,output_tokens\n5,0\n",
            "lengths.csv:2:1: a request has a whole number",
        ),
        # Thousands with a point, as German spreadsheets write them.
        ("input_tokens,output_tokens\n1.500,20\n", "lengths.csv:2:1: a request has a whole number"),
        (HISTOGRAM.replace("101,", "100.5,", 1), "lengths.csv:2:1: the ends of a bin are whole numbers"),
    ],
)
def test_mistakes_in_files(tmp_path: Path, lengths: str, expected: str) -> None:
    change = ("{input_tokens: 1000, output_tokens: 100}", "{lengths: lengths.csv}")
    assert expected in problems(tmp_path, change, lengths=lengths)[0]


def test_a_missing_file_has_a_place(tmp_path: Path) -> None:
    found = problems(tmp_path, ("{input_tokens: 1000, output_tokens: 100}", "{lengths: lengths.csv}"))
    assert found[0].startswith("fleet.yaml:9:25: services.chat.workload.lengths: lengths.csv cannot be read")


def test_lengths_stand_in_one_place(tmp_path: Path) -> None:
    both = "{lengths: lengths.csv, classes: {a: {input_tokens: 9, output_tokens: 9}}}"
    found = problems(tmp_path, ("{input_tokens: 1000, output_tokens: 100}", both), lengths=HISTOGRAM)
    assert "set it either here or in the classes" in found[0]


# Statistics -------------------------------------------------------------------------------------------------


def test_quantiles_and_variation() -> None:
    histogram = LengthHistogram((LengthBin(1, 101, 10, 11, 0.5), LengthBin(101, 201, 30, 31, 0.5)))
    assert histogram.input_quantile(0.25) == pytest.approx(50.5)
    assert histogram.input_quantile(0.75) == pytest.approx(150.5)
    assert histogram.input_quantile(1.0) == pytest.approx(200.0)
    # 10 or 30 with equal chances: a standard deviation of 10 around 20.
    assert histogram.output_variation == pytest.approx(0.25)


def test_bins_of_one_prompt_length_count_together() -> None:
    parts = (LengthBin(1, 101, 1, 2, 0.3), LengthBin(1, 101, 2, 9, 0.7))
    assert LengthHistogram(parts).input_quantile(0.5) == pytest.approx(50.5)


def test_every_length_has_a_bin() -> None:
    for tokens in range(1, 5000):
        (found,) = counted_bins([(tokens, tokens, 1)])
        assert found.input_from <= tokens < found.input_to
        assert (found.input_to - 1) / found.input_from < 1.5
