"""The error of a limit that comes before there is an answer: a sentence, and exit code 4."""

from __future__ import annotations


class LimitReachedError(Exception):
    """A limit was reached before there was anything to show."""
