"""Regenerate what Meta, Optimizing Deployment Configurations for LLM Inference, prints, beside our numbers.

    python benchmarks/paper_regenerate.py table6 | table7 | table8
    python benchmarks/paper_regenerate.py figure9 | figure11 | figure12 | figure13 | figure15
    python benchmarks/paper_regenerate.py search    what our search chooses in the paper's 16 cells
    python benchmarks/paper_regenerate.py study     when disaggregation pays
    python benchmarks/paper_regenerate.py peer      70B on H200 beside aiconfigurator's own model
    python benchmarks/paper_regenerate.py all

`--plot FOLDER` draws the figures and the study as SVG.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
from benchmarks import paper_figures as figures
from benchmarks import paper_search, paper_study
from benchmarks.paper_cases import Catalogue, catalogue

from fleetplan.planner.drawing import new_figure, save

TABLES: dict[str, Callable[[Catalogue], list[figures.FigureRow]]] = {
    "table6": lambda parts: figures.table_rows(parts, "online"),
    "table7": lambda parts: figures.table_rows(parts, "offline"),
    "table8": figures.table_8,
    "figure9": figures.figure_9,
    "figure11": figures.figure_11,
    "figure12": figures.figure_12,
    "figure13": figures.figure_13,
    "figure15": figures.figure_15,
}


def print_rows(name: str, rows: Sequence[figures.FigureRow]) -> None:
    """Print our figures beside the paper's, and the median error."""
    print(f"\n{name}\n{'':<70}{'ours':>10}{'paper':>10}{'error':>9}")
    for row in rows:
        paper = "-" if row.paper is None else f"{row.paper:.4g}"
        error = "-" if row.error is None else f"{row.error:+.1%}"
        print(f"{row.name:<70}{row.ours:>10.4g}{paper:>10}{error:>9}")
    errors = [abs(row.error) for row in rows if row.error is not None]
    if errors:
        print(f"median error {np.median(errors):.1%}, largest {max(errors):.1%}, {len(errors)} numbers")


def draw_rows(name: str, rows: Sequence[figures.FigureRow], folder: Path) -> None:
    """Draw our figures as bars, the paper's as marks."""
    figure, (axes,) = new_figure(1, width=7.0, height=0.24 * len(rows) + 1.2)
    places = np.arange(len(rows))[::-1]
    axes.barh(places, [row.ours for row in rows], height=0.6, label="ours")
    printed = [(place, row.paper) for place, row in zip(places, rows, strict=True) if row.paper is not None]
    if printed:
        axes.plot([paper for _, paper in printed], [place for place, _ in printed], "k|", ms=9, label="paper")
    axes.set_yticks(places, [row.name for row in rows], fontsize=6)
    axes.set_title(name)
    axes.legend(fontsize=7)
    print(f"drawn to {save(figure, folder / f'{name}.svg')}", file=sys.stderr)


def print_search(parts: Catalogue) -> None:
    """Print what the search chooses beside what the paper chose."""
    print(f"\nsearch\n{'':<90}{'ours':>8}{'paper':>8}")
    checks = list(paper_search.search_checks(parts))
    for check in checks:
        paper = "-" if check.paper is None else f"{check.paper:g}"
        print(f"{check.name:<90}{check.ours:>8.3g}{paper:>8}  {'met' if check.met else 'MISSED'}")
    prefill = [check for check in checks if check.name.endswith(" prefill")]
    same = sum(check.met for check in prefill)
    met = sum(check.met for check in checks)
    print(f"the paper's prefill TP in {same} of {len(prefill)} cells; {met} of {len(checks)} met")


def print_study(folder: Path | None) -> None:
    """Print by how much disaggregation wins."""
    rows = paper_study.study()
    print("\ndisaggregated over aggregated requests/s per accelerator, H200, FP8 weights")
    ratios = [f"{shape.input_tokens}:{shape.output_tokens}" for shape in paper_study.TRAFFIC]
    print(f"{'model':<14}{'limits':<36}" + "".join(f"{name:>12}" for name in ratios))
    for model in paper_study.MODELS:
        for limits in paper_study.LIMITS:
            own = [row.gain for row in rows if (row.model, row.limits) == (model, limits)]
            print(f"{model:<14}{limits:<36}" + "".join(f"{_gain(gain):>12}" for gain in own))
    if folder is None:
        return
    figure, panels = new_figure(len(paper_study.MODELS))
    for axes, model in zip(panels, paper_study.MODELS, strict=True):
        for limits in paper_study.LIMITS:
            own = [row.gain for row in rows if (row.model, row.limits) == (model, limits)]
            finite = [gain if np.isfinite(gain) else np.nan for gain in own]
            axes.plot(ratios, finite, ".-", label=limits)
        axes.axhline(1.0, color="grey", lw=0.8)
        axes.set_title(model)
        axes.set_xlabel("input:output tokens")
        axes.set_ylabel("disaggregated over aggregated")
        axes.legend(fontsize=6)
    print(f"drawn to {save(figure, folder / 'study.svg')}", file=sys.stderr)


def _gain(gain: float) -> str:
    if np.isnan(gain):
        return "neither"
    return f"{gain:.2f}" if np.isfinite(gain) else "only apart"


def print_peer() -> None:
    """Print our best setups of 8 to 32 accelerators beside the peer's."""
    print("\n70B on H200, 2,000 in, 150 out, TTFT 350 ms, TPOT 30 ms: output tokens/s per accelerator")
    for row in paper_study.beside_the_peer():
        print(f"{row.name:<90}{row.tokens_per_s:>9.0f}   aiconfigurator {row.peer}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is asked for."""
    others = ("search", "study", "peer")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=(*TABLES, *others, "all"))
    parser.add_argument("--plot", type=Path, help="folder for SVG files")
    asked = parser.parse_args(arguments)
    if asked.plot is not None:
        asked.plot.mkdir(parents=True, exist_ok=True)
    parts = catalogue()
    wanted = (*TABLES, *others) if asked.what == "all" else (asked.what,)
    for name in wanted:
        if name in TABLES:
            rows = TABLES[name](parts)
            print_rows(name, rows)
            if asked.plot is not None:
                draw_rows(name, rows, asked.plot)
        elif name == "search":
            print_search(parts)
        elif name == "study":
            print_study(asked.plot)
        else:
            print_peer()
    return 0


if __name__ == "__main__":
    sys.exit(main())
