"""Services to start from: the kinds in Table 2 of a paper.

Meta, "Optimizing Deployment Configurations for LLM Inference". What it calls TTIT is TPOT here.

The table gives ranges. A preset takes a value within each, and what the table leaves open is an assumption;
the file that is written says which is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from types import MappingProxyType
from typing import Final

SOURCE: Final = 'Table 2 of Meta, "Optimizing Deployment Configurations for LLM Inference"'

TEMPLATES: Final = ("tiny", "hetero", "quarterly")
"""Fleets to start from, in the folder `templates`."""

_COMMENT_COLUMNS: Final = 104


@dataclass(frozen=True, slots=True)
class Preset:
    """A kind of service.

    Attributes
    ----------
    table_row : str
        What Table 2 says of it.
    assumptions : str
        What the values below take beyond that.
    model : str
        A model of the catalogue of a size that the table names.
    precision : str
        Data type of weights and KV cache.
    input_tokens, output_tokens : int
        Mean new prompt tokens and mean generated tokens. [tokens]
    context_tokens : int or None
        Prompt tokens with those of the session's cache; None where nothing is cached. [tokens]
    ttft_ms, tpot_ms : int or None
        Limits on the means; None where the table has none. [ms]
    peak_requests_per_s : float
        Demand at peak in the first period, all regions together; an assumption. [requests/s]
    headroom : float
        Planned capacity above demand, as a share of it; an assumption.
    priority : int
        1 is served first.
    """

    table_row: str
    assumptions: str
    model: str
    precision: str
    input_tokens: int
    output_tokens: int
    context_tokens: int | None
    ttft_ms: int | None
    tpot_ms: int | None
    peak_requests_per_s: float
    headroom: float
    priority: int

    def service(self, name: str, demand: str) -> str:
        """Return the service as an item of the block `services`, with its demand as YAML."""
        about = f"{SOURCE} (its TTIT is TPOT here): {self.table_row}. {self.assumptions}"
        lines = [f"# {line}" for line in wrap(about, _COMMENT_COLUMNS)]
        lines += [f"- name: {name}", f"  model: {self.model}"]
        lines += [f"  precision: {{weights: {self.precision}, kv: {self.precision}}}"]
        lengths = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        lines += [f"  workload: {_flow({**lengths, 'context_tokens': self.context_tokens})}"]
        if self.ttft_ms is not None or self.tpot_ms is not None:
            limits = _flow({"ttft_ms": self.ttft_ms, "tpot_ms": self.tpot_ms})
            lines += [f"  slo: {limits}    # limits on means [ms]"]
        lines += ["  # Requests per second at peak, and what to plan above it as a share: assumptions."]
        lines += [f"  demand: {demand}", f"  headroom: {self.headroom:g}", f"  priority: {self.priority}"]
        return "".join(f"  {line}\n" for line in lines)


PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "text-agent": Preset(
            table_row="text agent: 500-2K tokens in, 100-500 out, context below 128K, TTFT 200-500 ms, "
            "TTIT below 40 ms, 10-500B, sessions",
            assumptions="Lengths are the geometric means of the ranges, TTFT the middle; 3,000 tokens of "
            "the session are cached (assumption).",
            model="llama3.3-70b",
            precision="fp8",
            input_tokens=1000,
            output_tokens=225,
            context_tokens=4000,
            ttft_ms=350,
            tpot_ms=40,
            peak_requests_per_s=20,
            headroom=0.15,
            priority=1,
        ),
        "multi-modal-agent": Preset(
            table_row="multi-modal agent: media and 500-2K tokens in, 100-500 out, context below 128K, "
            "TTFT 300-800 ms, TTIT below 40 ms, 10-500B, sessions",
            assumptions="Media count as the tokens that they become, at the upper end of the range; the "
            "encoder is not modelled. TTFT is the middle; 4,000 tokens of the session are "
            "cached (assumption).",
            model="qwen3-vl-32b",
            precision="fp8",
            input_tokens=2000,
            output_tokens=225,
            context_tokens=6000,
            ttft_ms=550,
            tpot_ms=40,
            peak_requests_per_s=10,
            headroom=0.15,
            priority=1,
        ),
        "real-time-agent": Preset(
            table_row="real-time agent: below 50 tokens in, 50-100 out, context below 32K, TTFT below "
            "200 ms, TTIT below 30 ms, 10-100B, sessions",
            assumptions="A session's context of 4,000 tokens is cached but for the new ones (assumption). "
            "Time for speech and transport goes into network_latency_ms.",
            model="qwen3-14b",
            precision="bf16",
            input_tokens=49,
            output_tokens=75,
            context_tokens=4000,
            ttft_ms=200,
            tpot_ms=30,
            peak_requests_per_s=40,
            headroom=0.2,
            priority=1,
        ),
        "safety": Preset(
            table_row="safety: below 8K tokens in, few out, context as the input, TTFT below 200 ms, no "
            "limit on TTIT, 10B",
            assumptions="1,000 tokens in and 4 out are assumptions.",
            model="llama3-8b",
            precision="bf16",
            input_tokens=1000,
            output_tokens=4,
            context_tokens=None,
            ttft_ms=200,
            tpot_ms=None,
            peak_requests_per_s=40,
            headroom=0.15,
            priority=1,
        ),
        "query-generation": Preset(
            table_row="query generation: below 8K tokens in, 100-500 out, context as the input, TTFT "
            "below 200 ms, TTIT below 10 ms, 10B",
            assumptions="1,000 tokens in are an assumption; 225 out are the geometric mean of the range.",
            model="llama3-8b",
            precision="bf16",
            input_tokens=1000,
            output_tokens=225,
            context_tokens=None,
            ttft_ms=200,
            tpot_ms=10,
            peak_requests_per_s=10,
            headroom=0.15,
            priority=2,
        ),
        "data-augmentation": Preset(
            table_row="data augmentation: below 8K tokens in, below 1K out, context below 32K, TTFT of "
            "a few seconds, TTIT below 300 ms, 100B-500B, sessions",
            assumptions="3 s for a few; 4,000 tokens in, 500 out and as many cached as new ones are "
            "assumptions.",
            model="llama3-405b",
            precision="fp8",
            input_tokens=4000,
            output_tokens=500,
            context_tokens=8000,
            ttft_ms=3000,
            tpot_ms=300,
            peak_requests_per_s=2,
            headroom=0.05,
            priority=3,
        ),
        "data-scoring": Preset(
            table_row="data scoring: below 32K tokens in, few out, context as the input, no limit on "
            "latency, 100B-500B",
            assumptions="8,000 tokens in and 8 out are assumptions. No headroom: requests do not wait.",
            model="mixtral-8x22b",
            precision="bf16",
            input_tokens=8000,
            output_tokens=8,
            context_tokens=None,
            ttft_ms=None,
            tpot_ms=None,
            peak_requests_per_s=4,
            headroom=0.0,
            priority=3,
        ),
    }
)


def _flow(values: Mapping[str, int | None]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items() if value is not None) + "}"
