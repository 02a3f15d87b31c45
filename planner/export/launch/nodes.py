"""What all manifests share: the label of a pool's nodes, and comments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

POOL_LABEL: Final = "fleetplan/pool"
"""Label of the nodes of a pool; the table of node pools has its value."""


def commented(title: str, notes: Iterable[str]) -> str:
    """Return lines of comments for the head of a YAML file; no text ends the comment that it stands in."""
    lines = [title, *dict.fromkeys(notes)]
    return "".join(f"# {' '.join(line.split())}\n" for line in lines)
