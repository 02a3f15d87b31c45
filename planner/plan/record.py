"""Base of the records of a plan: frozen; a reader ignores unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A part of a plan."""

    # The whole plan is built when it is imported (document.py), what else is needed at its first use.
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="null", defer_build=True)


MomentKey = tuple[str, str | None, str | None]
"""Period, slice, demand scenario."""


class AtMoment(Record):
    """A row of one period, part of the day and demand scenario."""

    period: str
    slice: str | None = None
    """Part of the day; None where it is the whole day."""
    scenario: str | None = None
    """Demand scenario; None where demand is certain."""

    @property
    def moment_key(self) -> MomentKey:
        """Return the key of the row's moment."""
        return self.period, self.slice, self.scenario
