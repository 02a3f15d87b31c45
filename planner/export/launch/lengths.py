"""The maximum sequence length of a launched server."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.planner.export.launch.checkpoints import RefusedError
from fleetplan.planner.export.launch.deployments import LaunchedGroup

MEANS_TO_LONGEST: Final = 8
"""Ratio of the longest admitted request to the mean one if only means are known: an assumption. In the public
traces of Azure (2023), 99 % of the requests have at most 5.7 (conversation) and 3.9 times (code) the mean
tokens.
"""

BLOCK_TOKENS: Final = 16
"""Block size of caches in servers; lengths are whole blocks. [tokens]"""


def longest_sequence(deployment: LaunchedGroup) -> tuple[int, str]:
    """Return the maximum sequence length, and a note on the limit that determines it. [tokens]

    Parameters
    ----------
    deployment : LaunchedGroup
        Deployment with lengths in every class.

    Returns
    -------
    tuple[int, str]
        At most the capacity of the memory beside the weights and the limit of the model's config.

    Raises
    ------
    RefusedError
        The plan states no lengths.
    """
    service, facts = deployment.service, deployment.facts
    lengths = [
        (each.context_tokens or each.input_tokens or 0) + (each.output_tokens or 0)
        for each in service.classes
    ]
    mean = max(lengths)
    if not mean:
        raise RefusedError("the plan states no lengths of requests")
    if facts.longest_request_tokens is None:
        why = f"{MEANS_TO_LONGEST} times the mean, because only means are known"
        wanted = MEANS_TO_LONGEST * mean
    else:
        wanted, why = facts.longest_request_tokens, "the longest request of the workload"
    wanted = -(-wanted // BLOCK_TOKENS) * BLOCK_TOKENS
    limits = [(wanted, why)]
    if facts.max_context_tokens is not None:
        limits.append((facts.max_context_tokens, "the limit of the model's config"))
    if facts.sequence_tokens:
        room = facts.sequence_tokens // BLOCK_TOKENS * BLOCK_TOKENS
        limits.append((room, "the memory left beside the weights"))
    tokens, reason = min(limits)
    return tokens, f"sequences of up to {counted(tokens, 'token')}: {reason} (mean {mean})"
