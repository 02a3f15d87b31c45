"""Base of the records of a plan: frozen; a reader ignores unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A part of a plan."""

    # Build the model of a record at its first use; the whole plan is built on import (document.py).
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="null", defer_build=True)


MomentKey = tuple[str, str | None, str | None]
"""Period, slice, demand scenario."""


class AtMoment(Record):
    """A row of one period, slice of the day and demand scenario."""

    period: str
    slice: str | None = None
    """Slice of the day; None for the whole day."""
    scenario: str | None = None
    """Demand scenario; None if demand is certain."""

    @property
    def moment_key(self) -> MomentKey:
        """Key of the row's moment."""
        return self.period, self.slice, self.scenario
