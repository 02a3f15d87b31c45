"""Values that several parts of the fleet file share."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

# Tags of alternatives start so and are left out of error paths; no key of a file can hold this character.
TAG_MARK: Final = "\0"


class Spec(BaseModel):
    """Base of everything in the file: unknown keys refused, nothing converted, nothing changed later."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


# Names become labels such as coverage[chat,us-east]; the characters that structure those are refused.
Name: TypeAlias = Annotated[str, Field(min_length=1, pattern=r"^[^\s,\[\]|]+$")]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
QUARTER_PATTERN: Final = r"^\d{4}Q[1-4]$"
Quarter: TypeAlias = Annotated[str, Field(pattern=QUARTER_PATTERN)]
NotNegative: TypeAlias = Annotated[float, Field(ge=0)]
Positive: TypeAlias = Annotated[float, Field(gt=0)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
PositiveCount: TypeAlias = Annotated[int, Field(ge=1)]


def _form(value: object) -> str:
    return f"{TAG_MARK}by_period" if isinstance(value, dict) else f"{TAG_MARK}once"


NumberByPeriod: TypeAlias = Annotated[
    Annotated[NotNegative, Tag(f"{TAG_MARK}once")]
    | Annotated[dict[str, NotNegative], Tag(f"{TAG_MARK}by_period")],
    Discriminator(_form),
]
CountByPeriod: TypeAlias = Annotated[
    Annotated[Count, Tag(f"{TAG_MARK}once")] | Annotated[dict[str, Count], Tag(f"{TAG_MARK}by_period")],
    Discriminator(_form),
]
# Which level of a nested mapping is which is decided by its keys, so the shape is checked where the names
# are known (fleetplan.fleet.resolve.services.demand_tree).
DemandTree: TypeAlias = Annotated[
    object,
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "object", "minProperties": 1}]}),
]
