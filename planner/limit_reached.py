"""Errors of a limit that comes before there is an answer: a sentence, and exit code 4."""

from __future__ import annotations


class LimitReachedError(Exception):
    """A limit was reached before there was anything to show."""


class OutOfTimeError(LimitReachedError):
    """The time was over before every service was evaluated on every hardware."""

    def within(self, time_limit_s: float) -> OutOfTimeError:
        """The same with the limit that was kept."""
        return OutOfTimeError(f"{self} within {time_limit_s:g} s; run again or raise --time-limit")
