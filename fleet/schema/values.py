"""Types that several parts of the schema share."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from datetime import date
from functools import cache, partial
from itertools import pairwise
from typing import Annotated, Final, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from fleetplan.fleet.schema.quantities import GROWTH_PATTERN, QUANTITY_PATTERN, SCALED_PATTERN

# Prefix of tags of alternatives, removed from error paths; no key of a file can contain this character.
TAG_MARK: Final = "\0"


class Spec(BaseModel):
    """Base of all blocks: unknown keys are errors, no conversions, immutable."""

    # fleet.py builds the whole model at import; building the parts separately would be wasted.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe each key by the text below its field.

        `use_attribute_docstrings` would parse this source at every start of a program that needs no schema.
        """
        found = handler(core_schema)
        keys = handler.resolve_ref_schema(found)["properties"]
        for part in cls.__mro__:
            if issubclass(part, Spec):
                for name, text in _texts_below_fields(part.__module__)[part.__name__].items():
                    keys[name].setdefault("description", text)
        return found


@cache
def _texts_below_fields(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of a module's classes, by class and field.

    Parsing the module once avoids parsing it for each of its classes.
    """
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: dict(_texts_within(each)) for each in tree.body if isinstance(each, ast.ClassDef)}


def _texts_within(model: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(model.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, inspect.cleandoc(said)


# Names become labels such as coverage[chat,us-east], so the structuring characters of labels are not allowed.
Name: TypeAlias = Annotated[str, Field(min_length=1, pattern=r"^[^\s,\[\]|]+$")]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
HardwareName: TypeAlias = Text
"""Name of hardware of drivers, labels and clouds, which may contain blanks."""
QUARTER_PATTERN: Final = r"^(\d{4}Q[1-4]|\d{4}-(0[1-9]|1[0-2])|FY\d{2}-Q[1-4])$"
Quarter: TypeAlias = Annotated[str, Field(pattern=QUARTER_PATTERN)]
"""A quarter, a month or a fiscal quarter."""
# Ranges of the integer model: costs add up to less than 4.6e12 USD in steps of 1e-6, and rates of a service
# are steps of 1e-8 of its largest demand, all in 64 bits.
LARGEST_NUMBER: Final = 1e12
LARGEST_COUNT: Final = 10**9
MOST_HOSTS: Final = 10**7
MOST_USD_PER_HOUR: Final = 1e5
MOST_USD_PER_HOST: Final = 1e9
MOST_BUDGET_USD: Final = 1e12
LEAST_REQUESTS_PER_S: Final = 1e-6
MOST_REQUESTS_PER_S: Final = 1e9

Percent: TypeAlias = Annotated[float, Field(ge=0, le=100)]
RESERVE_DECIMALS: Final = 6
"""Decimals of a reserve in per cent: its rows in the integer model multiply hosts by the whole fraction."""
ReservePercent: TypeAlias = Annotated[Percent, AfterValidator(partial(round, ndigits=RESERVE_DECIMALS))]
NotNegative: TypeAlias = Annotated[float, Field(ge=0, le=LARGEST_NUMBER)]
Positive: TypeAlias = Annotated[float, Field(gt=0, le=LARGEST_NUMBER)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
PositiveCount: TypeAlias = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
HostCount: TypeAlias = Annotated[int, Field(ge=0, le=MOST_HOSTS)]
UsdPerHour: TypeAlias = Annotated[float, Field(ge=0, le=MOST_USD_PER_HOUR)]
UsdPerHost: TypeAlias = Annotated[float, Field(ge=0, le=MOST_USD_PER_HOST)]
BudgetUsd: TypeAlias = Annotated[float, Field(ge=0, le=MOST_BUDGET_USD)]


def _form(value: object) -> str:
    return f"{TAG_MARK}by_period" if isinstance(value, dict) else f"{TAG_MARK}once"


_Once: Final = Tag(f"{TAG_MARK}once")
_ByPeriod: Final = Tag(f"{TAG_MARK}by_period")
NumberByPeriod: TypeAlias = Annotated[
    Annotated[NotNegative, _Once] | Annotated[dict[str, NotNegative], _ByPeriod], Discriminator(_form)
]
CountByPeriod: TypeAlias = Annotated[
    Annotated[HostCount, _Once] | Annotated[dict[str, HostCount], _ByPeriod], Discriminator(_form)
]
UsdPerHourByPeriod: TypeAlias = Annotated[
    Annotated[UsdPerHour, _Once] | Annotated[dict[str, UsdPerHour], _ByPeriod], Discriminator(_form)
]
UsdPerHostByPeriod: TypeAlias = Annotated[
    Annotated[UsdPerHost, _Once] | Annotated[dict[str, UsdPerHost], _ByPeriod], Discriminator(_form)
]
BudgetByPeriod: TypeAlias = Annotated[
    Annotated[BudgetUsd, _Once] | Annotated[dict[str, BudgetUsd], _ByPeriod], Discriminator(_form)
]
# fleet.resolve.services.demand reports mistakes in the text, with examples.
_GrowthText: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "pattern": GROWTH_PATTERN})]
Growth: TypeAlias = Annotated[
    Annotated[_GrowthText, _Once] | Annotated[dict[Name, _GrowthText], _ByPeriod], Discriminator(_form)
]
# The keys of a nested mapping determine its levels, so the shape is checked after the names are known
# (fleetplan.fleet.resolve.services.demand_leaves).
DemandTree: TypeAlias = Annotated[
    object,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": MOST_REQUESTS_PER_S * 86_400},
                {"type": "string", "pattern": f"{QUANTITY_PATTERN}|{SCALED_PATTERN}"},
                {"type": "object", "minProperties": 1},
            ]
        }
    ),
]


def _real_date(value: str) -> str:
    year, month, day = (*value.split("-"), "1", "1")[:3]
    try:
        date(int(year), int(month), int(day))
    except ValueError as error:
        raise PydanticCustomError("date", "there is no such day") from error
    return value


AS_OF_PATTERN: Final = r"^\d{4}(-\d{2}(-\d{2})?)?$"


def is_date(text: str) -> bool:
    """Return whether a text is a day, a month or a year in the format of a fleet file."""
    try:
        return re.fullmatch(AS_OF_PATTERN, text) is not None and bool(_real_date(text))
    except PydanticCustomError:
        return False


def _year_as_text(value: object) -> object:
    """Return a year as text: without quotes it is a number."""
    return str(value) if type(value) is int else value


AsOf: TypeAlias = Annotated[
    str, Field(pattern=AS_OF_PATTERN), AfterValidator(_real_date), BeforeValidator(_year_as_text)
]
