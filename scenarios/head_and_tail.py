"""Write a fleet of one large service and a hundred small ones: python -m fleetplan.scenarios.head_and_tail.

The sizes of the tail follow a power law, as the popularity of models does: the service of rank r asks for 1/r
of what the first one asks for. Lengths and limits are those of Table 2 in Meta, "Optimizing Deployment
Configurations for LLM Inference", for the kinds of service that it names. Everything is the same for the same
seed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TAIL: Final = 100
SEED: Final = 1
FIRST_OF_TAIL_REQUESTS_PER_S: Final = 20.0
"""Demand of the largest small service; the hundredth asks for a hundredth of it. [1/s]"""

HEAD: Final = """\
# yaml-language-server: $schema=fleet.schema.json
# One large service and a hundred small ones: does the tail cost more than its share, and on which parts?
#
#     plan scenarios/head-and-tail.yaml --gap 5%
#
# Written by scenarios/head_and_tail.py; change that, not this. A replica serves one service, so every small
# one has at least one of its own, mostly idle: cheap parts are worth more to the tail than to the head, and
# there are not enough of them for all (assumption), so the services compete. Demand of the tail follows a
# power law (assumption), lengths and limits are those of Meta, "Optimizing Deployment Configurations for LLM
# Inference", Table 2, prices those of the price book of this package.
version: 1
name: head-and-tail

regions:
  hall: {pue: 1.2, energy_usd_per_kwh: 0.09}

offers:
  - {name: h100, hardware: H100-SXM, per: accelerator, price_book: rental_3y}
  - {name: h200, hardware: H200-SXM, price_book: rental_3y}
  - {name: a100, hardware: A100-SXM-80GB, per: accelerator, price_book: on_demand_low, max_accelerators: 60}
  - {name: l40s, hardware: L40S, per: accelerator, price_book: on_demand_low, max_accelerators: 40}

services:
  - name: head
    model: llama3-70b
    precision: {weights: fp8, kv: fp8}
    workload: {input_tokens: 1155, output_tokens: 211}
    slo: {ttft_ms: 350, tpot_ms: 40}
    demand: 400
    headroom: 0.15
"""

POLICY: Final = """
policy: {max_configs_per_service_region: 2}
"""


@dataclass(frozen=True, slots=True)
class HeadAndTailKind:
    """What a small service of one kind looks like, as keys of the fleet file."""

    name: str
    model: str
    workload: str
    slo: str


KINDS: Final = (
    HeadAndTailKind(
        "agent", "llama3-8b", "{input_tokens: 1155, output_tokens: 211}", "{ttft_ms: 500, tpot_ms: 40}"
    ),
    HeadAndTailKind("safety", "llama3-8b", "{input_tokens: 563, output_tokens: 4}", "{ttft_ms: 200}"),
    HeadAndTailKind(
        "rewriting", "llama3-8b", "{input_tokens: 1155, output_tokens: 129}", "{ttft_ms: 200, tpot_ms: 20}"
    ),
    HeadAndTailKind(
        "voice", "qwen3-14b", "{input_tokens: 50, output_tokens: 75}", "{ttft_ms: 200, tpot_ms: 30}"
    ),
)


def fleet_text() -> str:
    """The fleet file."""
    return HEAD + "".join(_tail(random.Random(SEED))) + POLICY


def _tail(rng: random.Random) -> Iterator[str]:
    for rank in range(1, TAIL + 1):
        kind = rng.choice(KINDS)
        demand = FIRST_OF_TAIL_REQUESTS_PER_S / rank
        yield (
            f"  - {{name: {kind.name}-{rank:03d}, model: {kind.model}, demand: {demand:.3g},\n"
            f"     headroom: 0.15, workload: {kind.workload}, slo: {kind.slo}}}\n"
        )


def main() -> None:
    """Write the file beside this one, or where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(__file__).with_name("head-and-tail.yaml")
    parser.add_argument("--out", type=Path, default=beside, help="the file to write")
    parser.parse_args().out.write_text(fleet_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
