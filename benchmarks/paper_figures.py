"""Tables 6, 7, 8 and Figures 9, 11, 12, 13, 15 of the paper, regenerated: our number beside the paper's.

"The paper" is Meta, Optimizing Deployment Configurations for LLM Inference. Everything is evaluated by
`benchmarks.paper_cases`, so nothing here has constants of its own but the shapes of models that the paper
does not publish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from benchmarks.paper_bars import (
    DENSE_TP8_REQUESTS_PER_S,
    DENSE_TP16_TO_TP8,
    FIGURE_BATCH,
    MAVERICK,
    PREFILL_TP4_TO_TP2,
)
from benchmarks.paper_cases import (
    HARDWARE,
    ONLINE,
    Catalogue,
    architecture,
    configurations,
    continuous_rates,
    disaggregated_rates,
    evaluator,
    on_cluster,
)
from tests.perfmodel.paper_tables import HETEROGENEOUS, OUTPUT_TOKENS

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    GroupedQueryAttention,
    LayerGroup,
    ModelArchitecture,
    MoeFfn,
)
from fleetplan.perfmodel.evaluator import disaggregated_requests_per_s
from fleetplan.perfmodel.parallelism import parse_parallelism

FIGURE_12_MOE: Final = {"prefill TP8": 213.0, "decode TP8": 344.0, "decode TP8DP2-TP8EP2": 400.0}
"""Figure 12, requests/s of 256 GPU-A; the EP setup is that of the talk's slide."""

FIGURE_12_DENSE_PREFILL: Final = 96.0


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One number.

    Attributes
    ----------
    name : str
        What it is.
    ours : float
        Our figure.
    paper : float or None
        The paper's; None where it prints none.
    """

    name: str
    ours: float
    paper: float | None = None

    @property
    def error(self) -> float | None:
        """Relative error; None without the paper's figure."""
        return None if self.paper is None else self.ours / self.paper - 1.0


def table_rows(parts: Catalogue, table: str) -> list[FigureRow]:
    """Table 6 (online) or Table 7 (offline), at the paper's configurations."""
    rows: list[FigureRow] = []
    for found in disaggregated_rates(parts, HARDWARE):
        row = found.row
        if row.table != table:
            continue
        name = f"{row.model} {row.hardware} disaggregated"
        model = evaluator(architecture(row.model), parts[row.hardware])
        outputs = [OUTPUT_TOKENS[table]]
        prompts = configurations([parse_parallelism(row.prefill)], [1], outputs)
        tokens = configurations([parse_parallelism(row.decode)], [row.batch], outputs)
        rows += [
            FigureRow(
                f"{name}: TTFT, {row.prefill} [ms]", float(model.prefill(prompts).ttft_ms[0]), row.ttft_ms
            ),
            FigureRow(
                f"{name}: TPOT, {row.decode} b{row.batch} [ms]",
                float(model.decode(tokens).tpot_ms[0]),
                row.tpot_ms,
            ),
            FigureRow(
                f"{name}: prefill requests/s", found.prefill_requests_per_s, row.prefill_requests_per_s
            ),
            FigureRow(f"{name}: decode requests/s", found.decode_requests_per_s, row.decode_requests_per_s),
            FigureRow(f"{name}: requests/s", found.requests_per_s, row.requests_per_s),
        ]
    for aggregated in continuous_rates(parts, HARDWARE):
        own = aggregated.row
        if own.table == table:
            name = f"{own.model} {own.hardware} continuous batching, {own.setup} b{own.batch}"
            rows.append(FigureRow(f"{name}: requests/s", aggregated.requests_per_s, own.requests_per_s))
    return rows


def table_8(parts: Catalogue) -> list[FigureRow]:
    """Prefill and decode on different hardware, 405B online."""
    by_hardware = {
        found.row.hardware: found
        for found in disaggregated_rates(parts, HARDWARE)
        if (found.row.table, found.row.model) == (ONLINE, "llama3-405b")
    }
    rows = []
    for pair in HETEROGENEOUS:
        prefill = by_hardware[pair.prefill_hardware].prefill_requests_per_s
        decode = by_hardware[pair.decode_hardware].decode_requests_per_s
        name = f"prefill {pair.prefill_hardware}, decode {pair.decode_hardware}"
        joined = disaggregated_requests_per_s(np.array([prefill]), np.array([decode]))
        rows += [
            FigureRow(f"{name}: decode over prefill", decode / prefill, pair.decode_to_prefill_ratio),
            FigureRow(f"{name}: requests/s", float(joined[0]), pair.requests_per_s),
        ]
    return rows


def figure_9(parts: Catalogue) -> list[FigureRow]:
    """70B online: prefill over parallelism on GPU-A, decode over parallelism and batch on GPU-C."""
    labels = ("PP8", "PP4-TP2", "PP2-TP4", "TP8")
    prefill = rates(architecture("llama3-70b"), parts["GPU-A"], labels, 1, "prefill")
    rows = [
        FigureRow(f"9a: prefill {name}, requests/s", rate) for name, rate in zip(labels, prefill, strict=True)
    ]
    ratio = prefill[2] / prefill[1]
    rows.append(FigureRow("9a: PP2-TP4 over PP4-TP2", ratio, PREFILL_TP4_TO_TP2))
    degrees = ("TP2", "TP4", "TP8")
    decode = rates(architecture("llama3-70b"), parts["GPU-C"], degrees, FIGURE_BATCH, "decode")
    rows += [
        FigureRow(f"9b: decode {name} b{FIGURE_BATCH}, requests/s", rate)
        for name, rate in zip(degrees, decode, strict=True)
    ]
    for batch in (8, 16, 32, 64, 128, 256):
        (rate,) = rates(architecture("llama3-70b"), parts["GPU-C"], ("TP8",), batch, "decode")
        rows.append(FigureRow(f"9c: decode TP8 b{batch}, requests/s", rate))
    return rows


def figure_11(parts: Catalogue) -> list[FigureRow]:
    """405B online on GPU-A and Next-Gen at the paper's setups."""
    return [
        row
        for row in table_rows(parts, ONLINE)
        if row.name.startswith(("llama3-405b GPU-A", "llama3-405b NextGen"))
    ]


def figure_12(parts: Catalogue) -> list[FigureRow]:
    """405B dense and as a mixture of four experts, two a token, on GPU-A."""
    dense, part = architecture("llama3-405b"), parts["GPU-A"]
    mixture = four_experts()
    rows = [
        FigureRow(
            "12a: dense prefill TP8, no cached prefix, requests/s",
            _prefill_without_prefix(dense, part),
            FIGURE_12_DENSE_PREFILL,
        ),
        FigureRow(
            "12a: mixture prefill TP8, no cached prefix, requests/s",
            _prefill_without_prefix(mixture, part),
            FIGURE_12_MOE["prefill TP8"],
        ),
    ]
    eight, sixteen = rates(dense, part, ("TP8", "TP16"), FIGURE_BATCH, "decode")
    rows += [
        FigureRow("12b: dense decode TP8, requests/s", eight, DENSE_TP8_REQUESTS_PER_S),
        FigureRow("12b: dense decode TP16 over TP8", sixteen / eight, DENSE_TP16_TO_TP8),
    ]
    labels = ("TP8", "TP16", "TP8DP2-TP8EP2", "TP4DP4-TP4EP4")
    for name, rate in zip(labels, rates(mixture, part, labels, FIGURE_BATCH, "decode"), strict=True):
        rows.append(
            FigureRow(f"12b: mixture decode {name}, requests/s", rate, FIGURE_12_MOE.get(f"decode {name}"))
        )
    return rows


def four_experts() -> ModelArchitecture:
    """Shapes of the mixture of Figure 12, of which the paper prints "125B x 4 experts" and 405B in all.

    Both sizes fix what is not experts: with the head size of Llama 3.1, 88 layers of hidden size 12,288 have
    32B of it and 93B of feed-forward weights a copy, four of which come to 404B.
    """
    attention = GroupedQueryAttention(heads=96, kv_heads=8, head_dim=128, value_head_dim=128)
    mixture = MoeFfn(experts=4, top_k=2, intermediate_size=28_672, gated=True)
    return ModelArchitecture(
        "125B x 4", "mixtral", 12_288, 128_256, False, (LayerGroup(88, attention, mixture),)
    )


def figure_13(parts: Catalogue) -> list[FigureRow]:
    """Llama 4 Maverick decode on GPU-A."""
    found = rates(architecture("llama4-maverick"), parts["GPU-A"], tuple(MAVERICK), FIGURE_BATCH, "decode")
    return [
        FigureRow(f"Maverick decode {name}, requests/s", rate, MAVERICK[name])
        for name, rate in zip(MAVERICK, found, strict=True)
    ]


def figure_15(parts: Catalogue) -> list[FigureRow]:
    """A model of 1.8T weights, dense and as a mixture, on hosts of 8 and in a pod of 64 of Next-Gen.

    The paper prints no numbers here; it says that a dense model gains nothing beyond TP8 on hosts and
    diminishing returns up to TP64 in the pod, and that a mixture scales by EP on hosts in decode.
    """
    dense = large_dense()
    mixture = with_experts(dense, experts=64, top_k=8)
    rows = []
    spread = ("TP8", "TP8DP2-TP8EP2", "TP8DP4-TP8EP4", "TP8DP8-TP8EP8", "TP8DP8-TP1EP64")
    drawn = (
        ("15a: dense decode", dense, ("TP8", "TP16", "TP32", "TP64"), FIGURE_BATCH, "decode"),
        ("15b: mixture decode", mixture, spread, FIGURE_BATCH, "decode"),
        ("15b: mixture prefill", mixture, spread, 1, "prefill"),
    )
    for name in ("NextGen", "NextGen-Pod"):
        for title, model, labels, batch, phase in drawn:
            found = rates(model, parts[name], labels, batch, phase)
            rows += [
                FigureRow(f"{title} {label} on {name}, requests/s", rate)
                for label, rate in zip(labels, found, strict=True)
            ]
    return rows


def large_dense() -> ModelArchitecture:
    """Shapes of a dense decoder of 1.8T weights: the proportions of Llama 3.1 405B, scaled up."""
    attention = GroupedQueryAttention(heads=256, kv_heads=8, head_dim=128, value_head_dim=128)
    group = LayerGroup(152, attention, DenseFfn(98_304))
    return ModelArchitecture("dense of 1.8T", "llama", 32_768, 128_256, False, (group,))


def with_experts(dense: ModelArchitecture, experts: int, top_k: int) -> ModelArchitecture:
    """Return a mixture of the same size: the width of every dense block is shared out among the experts."""
    groups = []
    for group in dense.groups:
        if not isinstance(group.ffn, DenseFfn):
            raise ValueError(f"{dense.name} is not dense")
        mixture = MoeFfn(experts, top_k, group.ffn.intermediate_size // experts, group.ffn.gated)
        groups.append(LayerGroup(group.count, group.attention, mixture))
    return replace(dense, name=f"{dense.name}, {experts} experts", model_type="mixtral", groups=tuple(groups))


def rates(
    model: ModelArchitecture, part: Accelerator, labels: Sequence[str], batch: int, phase: str
) -> list[float]:
    """Online rates of 256 accelerators for some layouts. [1/s]."""
    asked = configurations(
        [parse_parallelism(label) for label in labels],
        [batch] * len(labels),
        [OUTPUT_TOKENS[ONLINE]] * len(labels),
    )
    own = evaluator(model, part)
    result = own.prefill(asked) if phase == "prefill" else own.decode(asked)
    return [float(rate) for rate in on_cluster(result.requests_per_s, asked)]


def _prefill_without_prefix(model: ModelArchitecture, part: Accelerator) -> float:
    asked = configurations([parse_parallelism("TP8")], [1], [OUTPUT_TOKENS[ONLINE]])
    asked = replace(asked, prefix_tokens=np.zeros_like(asked.prefix_tokens))
    return float(on_cluster(evaluator(model, part).prefill(asked).requests_per_s, asked)[0])
