"""The command `plan landscape`: output, files, plots, explanations and errors."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.parts import first_parts

from fleetplan.perfmodel.landscape import LatencyTarget, RequestShape, SearchSpace
from fleetplan.planner import cli
from fleetplan.planner.landscape.answer import answer, point_of_row
from fleetplan.planner.landscape.explain import explain
from fleetplan.planner.landscape.menu import inference_menu
from fleetplan.planner.landscape.question import LandscapeOptions, Question, question_of_options
from fleetplan.planner.landscape.waterfall import waterfall

MODEL = ["--model", "llama3-70b", "--hardware", "GPU-A,MI300X", "--input", "2000", "--output", "150"]
LIMITS = ["--ttft", "400", "--tpot", "40", "--weights", "fp8", "--max-accelerators", "8"]
TINY = Path(__file__).parents[3] / "scenarios" / "tiny.yaml"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["landscape", *map(str, arguments)])
    printed = capsys.readouterr()
    return int(stopped.value.code or 0), printed.out, printed.err


def question(
    ttft_ms: float | None = 400.0, tpot_ms: float | None = 40.0, output_tokens: int = 150
) -> Question:
    asked = LandscapeOptions(
        "llama3-70b",
        ("GPU-A", "MI300X"),
        RequestShape(2000, output_tokens),
        LatencyTarget(ttft_ms, tpot_ms),
        ("fp8",),
        ("bf16",),
        "vllm",
        "rental_3y",
    )
    return question_of_options(asked, SearchSpace(max_accelerators=8))


def test_the_screen_has_counts_the_best_and_the_frontier(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *MODEL, *LIMITS)
    assert code == 0
    for text in (
        "configurations/s",
        "memory: kv cache",
        "decode: the best",
        "decode: Pareto frontier",
        "P:D",
    ):
        assert text in out
    assert "GPU-A: no price" in out


def test_a_service_of_a_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, TINY)
    assert code == 0
    assert "USD/h" in out
    assert "prefill and decode together" in out
    code, out, _ = run(capsys, TINY, "--explain", "0")
    assert code == 0
    assert "headroom" in out
    assert "reserve" in out


def test_files_hold_every_row_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    csv, parquet = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    code, _, _ = run(capsys, *MODEL, *LIMITS, "--csv", csv, "--parquet", parquet)
    assert code == 0
    table = pd.read_csv(csv, keep_default_na=False, na_values=[""])
    assert table["row"].tolist() == list(range(len(table)))
    assert {"ttft", "tpot"} <= set(table["excluded"].dropna())
    same = pd.read_parquet(parquet)
    np.testing.assert_allclose(table["requests_per_s_per_256"], same["requests_per_s_per_256"], rtol=1e-12)
    few = tmp_path / "few.csv"
    run(capsys, *MODEL, *LIMITS, "--csv", few, "--usable", "--filter", "tp == 4 and batch > 8")
    kept = pd.read_csv(few)
    assert set(kept["tp"]) == {4}
    assert kept["batch"].min() > 8
    assert kept["excluded"].isna().all()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("suffix", first_parts(("svg", "png"), 1))
def test_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str) -> None:
    code, _, _ = run(capsys, *MODEL, *LIMITS, "--plot", tmp_path / "plots", "--plot-format", suffix)
    assert code == 0
    names = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert names == [f"{name}.{suffix}" for name in ("breakdown", "frontier", "heatmap")]
    assert all((tmp_path / "plots" / name).stat().st_size > 2000 for name in names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "llama3-70b"], "--hardware, --input, --output: is needed"),
        ([*MODEL[:2], "--hardware", "H100-SMX", *MODEL[4:]], "did you mean 'H100-SXM'"),
        ([*MODEL, "--weights", "fp9"], "--weights: there is no 'fp9'"),
        ([*MODEL, "--prices", "cheap"], "--prices: there is no 'cheap'"),
        ([*MODEL, "--framework", "vlm"], "did you mean 'vllm'"),
        ([*MODEL, "--context", "10"], "--context: 10 is less than the 2000 of --input"),
        ([*MODEL, "--filter", "tpp < 3"], "--filter: 'tpp < 3' cannot be read"),
        ([*MODEL, "--filter", "@pd.x"], "may name only columns"),
        ([*MODEL, "--explain", "999999"], "--explain: there is no row 999999"),
        ([*MODEL, "--plot", "x", "--plot-format", "gif"], "--plot-format: there is no 'gif'"),
        ([*MODEL, "--csv", "no/such/folder/x.csv"], "--csv: there is no folder"),
        ([str(TINY), "--model", "llama3-70b"], "--model: is already in the fleet file"),
        ([str(TINY), "--service", "chatt"], "did you mean 'chat'"),
        (["--model", "nosuch", *MODEL[2:]], "nosuch"),
    ],
)
def test_mistakes_are_refused_by_name(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_an_explanation_adds_up_to_the_row() -> None:
    asked = question()
    found = answer(asked)
    for phase, points in found.phase_points.items():
        point, reason = point_of_row(asked, int(points.row[0]))
        assert reason == ""
        assert point.batch[0] == points.batch[0]
        own = asked.space.options[int(point.option[0])]
        taken = explain(own, phase, point.layout[0], int(point.batch[0]), asked.space.requests[0])
        assert sum(line.time_ms for line in taken.lines) == pytest.approx(taken.latency_ms)
        assert all(0 <= line.light_share <= 1 + 1e-9 for line in taken.lines)
        assert {line.source for line in taken.lines} == {"roofline"}
        if phase == "decode":
            assert taken.latency_ms == pytest.approx(point.tpot_ms[0])


def test_a_waterfall_only_falls_and_ends_at_the_row() -> None:
    asked = question()
    points = answer(asked).phase_points["decode"]
    best = points.take(np.array([int(np.argmax(points.requests_per_s_per_accelerator))]))
    stages = waterfall(asked, best)
    assert stages[0].name == "peak of the data sheet"
    tflops = [stage.tflops for stage in stages]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(tflops))
    # Without limits the last step costs nothing.
    free = question(None, None)
    points = answer(free).phase_points["decode"]
    points = points.take(points.option == 0)
    best = points.take(np.array([int(np.argmax(points.requests_per_s_per_accelerator))]))
    stages = waterfall(free, best)
    assert stages[-1].tflops == pytest.approx(stages[-2].tflops)


def test_a_tighter_latency_class_is_never_cheaper() -> None:
    asked = question()
    menu = inference_menu(asked)
    assert menu["latency"].tolist() == ["twice as fast", "as agreed", "relaxed", "batch"]
    prices = menu["usd_per_million_tokens"].tolist()
    priced = [price for price in prices if not np.isnan(price)]
    assert len(priced) >= 2
    assert priced == sorted(priced, reverse=True)


def test_a_menu_says_where_nothing_meets_the_limits() -> None:
    menu = inference_menu(question(0.01, 0.01))
    assert menu["served_by"].tolist()[:3] == ["nothing meets the limits"] * 3
    assert menu["runtime"].tolist()[3] != "-"


def test_nothing_decodes_in_a_menu_of_one_output_token() -> None:
    menu = inference_menu(question(output_tokens=1))
    served = menu[menu["served_by"] != "nothing meets the limits"]
    assert len(served)
    assert set(served["runtime"]) == {"aggregated"}
    assert not served["served_by"].str.contains(" + ", regex=False).any()
