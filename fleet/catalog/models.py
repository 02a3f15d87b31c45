"""The catalogue of models: names, and the config facts that determine shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fleetplan.fleet.errors import InputError, Issue, nearest


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model of the catalogue.

    Attributes
    ----------
    name : str
        Id on the Hugging Face Hub.
    aliases : tuple[str, ...]
        Other names: short ones, and ids of checkpoints with the same shapes (instruct, quantised).
    published_parameters : float
        Parameters by its publisher, for checks. [billion]
    published_active_parameters : float or None
        Active parameters of a mixture of experts, by its publisher. [billion]
    source : str
        Where the config was read.
    config : Mapping[str, object]
        Keys of its `config.json` that determine shapes, with their original names.
    """

    name: str
    aliases: tuple[str, ...]
    published_parameters: float
    published_active_parameters: float | None
    source: str
    config: Mapping[str, object]


class UnknownModelError(InputError):
    """No model of the catalogue has this name.

    Attributes
    ----------
    reference : str
        The requested name.
    hint : str
        Allowed names, and the nearest match.
    """

    def __init__(self, reference: str, hint: str) -> None:
        self.reference = reference
        self.hint = hint
        super().__init__([Issue(reference, 0, 0, "", "no such model in the catalogue", hint)])


class _Entry(BaseModel):
    """Schema of one model in the catalogue file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    aliases: list[str]
    published_parameters_billion: Annotated[float, Field(gt=0)]
    published_active_parameters_billion: Annotated[float, Field(gt=0)] | None = None
    source: Annotated[str, Field(min_length=1)]
    config: dict[str, object]


@cache
def model_catalog() -> Mapping[str, ModelFacts]:
    """Return all models of the catalogue by id."""
    text = (files("fleetplan.fleet.catalog") / "models.yaml").read_text(encoding="utf-8")
    entries = TypeAdapter(dict[str, _Entry]).validate_python(
        yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    )
    return MappingProxyType(
        {
            name: ModelFacts(
                name=name,
                aliases=tuple(entry.aliases),
                published_parameters=entry.published_parameters_billion,
                published_active_parameters=entry.published_active_parameters_billion,
                source=entry.source,
                config=MappingProxyType(entry.config),
            )
            for name, entry in entries.items()
        }
    )


@cache
def _names() -> Mapping[str, str]:
    """Map every name in lower case to its id; names are unique."""
    names: dict[str, str] = {}
    for facts in model_catalog().values():
        for name in (facts.name, *facts.aliases):
            if names.setdefault(name.lower(), facts.name) != facts.name:
                raise ValueError(f"the model catalogue has {name!r} twice")
    return MappingProxyType(names)


_QUANTISED: Final = re.compile(
    r"(?P<base>.+?)[-_.](?:quantized\.)?"
    r"(?:nvfp4|mxfp4|fp4|fp8|awq|gptq|int4|int8|w4a16|w8a8|w8a16|w4a8|w4afp8)"
    r"(?:[-_.](?:kv|dynamic|static|block|preview|int4|int8|fp8|w4a16|g?128|sym|marlin))*",
    re.IGNORECASE,
)
"""A published copy of a checkpoint whose name contains the data type of its weights."""


@cache
def _bare_names() -> Mapping[str, str]:
    """Map ids without their publishers to ids, if they belong to one model only."""
    found: dict[str, set[str]] = {}
    for facts in model_catalog().values():
        for each in (facts.name, *facts.aliases):
            if "/" in each:
                found.setdefault(_bare(each), set()).add(facts.name)
    return MappingProxyType({bare: next(iter(ids)) for bare, ids in found.items() if len(ids) == 1})


def _bare(identifier: str) -> str:
    return identifier.rsplit("/", 1)[-1].lower()


def _original(name: str) -> str | None:
    """Return the id of the model that an id is a quantised copy of, by any publisher."""
    quantised = _QUANTISED.fullmatch(_bare(name)) if name.count("/") == 1 else None
    return None if quantised is None else _bare_names().get(quantised["base"])


def resolve(name: str) -> str:
    """Return the id of a model named by its id or an alias, in any case.

    The id of a quantised copy, such as RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic, selects the model that it
    copies.

    Raises
    ------
    UnknownModelError
        With the nearest name.
    """
    names = _names()
    found = names.get(name.strip().lower()) or _original(name.strip())
    if found is None:
        allowed = "allowed: an id or alias of the model catalogue, or the path of a config.json"
        if name.count("/") == 1:
            allowed += ", which `plan import model ID --out model.json` fetches"
        spelled = [each for facts in model_catalog().values() for each in (facts.name, *facts.aliases)]
        meant = nearest(name, spelled)
        raise UnknownModelError(name, allowed if meant is None else f"{allowed}; did you mean {meant!r}?")
    return found


def checkpoint(name: str) -> str:
    """Return the checkpoint of a name: an id in the catalogue's spelling.

    Checkpoints of the same shapes (chat, quantised) keep their ids, known or not; a short name selects the
    checkpoint of its model.

    Raises
    ------
    UnknownModelError
        As `resolve`.
    """
    found = resolve(name)
    wanted = name.strip().lower()
    if wanted not in _names():
        return name.strip()
    ids = (each for each in model_catalog()[found].aliases if "/" in each and each.lower() == wanted)
    return next(ids, found)
