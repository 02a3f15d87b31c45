"""Time of a server's single process to render the messages of a chat request.

A server renders the messages of a chat request by the template of the model. Some versions of vLLM parsed the
template for every request. Python parses one request after the other, and all arrived requests reach the
engine together: of 1,000 simultaneous requests, none reaches it before 10 s. Requests with plain text, as in
most benchmarks, have no template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OWN_FORMAT_MODEL_TYPES: Final = frozenset({"gpt_oss"})
"""Decoders whose messages vLLM writes out without a template. Source: its entrypoints/harmony_utils.py."""


@dataclass(frozen=True, slots=True)
class ParsedTemplate:
    """Versions of a framework that parse the template of every request.

    Attributes
    ----------
    framework : str
        trtllm, sglang or vllm.
    since, until : str
        First month with it, and first month without it (YYYY-MM).
    request_ms : float
        Time per request. [ms]
    source : str
        Source: documentation or measurement.
    """

    framework: str
    since: str
    until: str
    request_ms: float
    source: str


PARSED_TEMPLATES: Final = (
    ParsedTemplate(
        "vllm",
        "2024-11",
        "2025-07",
        7.0,
        "vLLM pull request 20065 (June 2025): 1,000 requests wait for 6 to 8 s; since pull request 9919 "
        "(vLLM 0.6.4, November 2024) the format of the content is looked for in the template of each",
    ),
    ParsedTemplate(
        "vllm",
        "2025-10",
        "2025-11",
        10.0,
        "vLLM pull request 26227 (4 October 2025): the variables of a template are kept; vLLM 0.11.0 looks "
        "for them in each request. GPUStack's performance lab (gpustack/gpustack@47277d79), 1,000 requests "
        "of 128 tokens for 4 tokens at once: twice the mean TTFT less the 99th percentile, where the first "
        "one is, is 5 to 17 s, 10 s at the median, on eleven pages of Qwen3, GLM and DeepSeek under vLLM "
        "0.11.0, and 0 to 3 s of gpt-oss, under SGLang and under TensorRT-LLM",
    ),
)
"""Everything that is known."""


def template_ms(framework: str, model_type: str, software_date: str) -> float:
    """Return the serial time of a chat request for its template. [ms]

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm.
    model_type : str
        `model_type` of the decoder's config.
    software_date : str
        Year and month of the framework (YYYY-MM); empty for the newest.
    """
    if model_type in OWN_FORMAT_MODEL_TYPES:
        return 0.0
    return sum(
        row.request_ms
        for row in PARSED_TEMPLATES
        if row.framework == framework and row.since <= software_date < row.until
    )
