"""Load page templates with their filters, and cache the code that Jinja compiles.

Compiling takes 0.25 s, half the time to solve and write a small plan. The cache key in the user's cache
folder covers the template, this module, Jinja and Python.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import CodeType
from typing import Final

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from fleetplan.fleet.figures import (
    counted,
    figure,
    how_sure_unmet,
    in_shown,
    money,
    percent,
    signed_money,
    span,
)
from fleetplan.fleet.files import cache_key, forget_oldest, is_cache_on, user_cache, write_whole
from fleetplan.fleet.packages import installed_version
from fleetplan.planner.report.beyond_horizon import break_even
from fleetplan.planner.report.day_console import unproven
from fleetplan.planner.report.decision import asked_by

CACHED_FILES: Final = 32
"""Maximum number of cached templates. There are seven; those of other versions are removed first."""

_DIGEST_BYTES: Final = 32
"""Length of a SHA-256 digest. [bytes]"""


@cache
def template(room: str, name: str) -> Template:
    """Return a template of a package: names are escaped on rendering, figures are formatted for readers."""
    own = _environment()
    source = files(room).joinpath(name).read_text(encoding="utf-8")
    return own.template_class.from_code(own, _code(own, source), own.make_globals(None))


@cache
def _environment() -> Environment:
    """Return the environment of all templates."""
    found = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # Jinja evaluates a filter of a constant on compilation, which would freeze the currency of that moment.
    found.filters.update(
        money=_money,
        percent=percent,
        number=figure,
        figure3=_figure3,
        money3=_money3,
        shown=in_shown,
        how_sure_unmet=how_sure_unmet,
        signed=_signed,
        span=span,
        unproven=unproven,
        break_even=break_even,
        coded=_coded,
        asked_by=asked_by,
        counted=counted,
    )
    return found


def _code(own: Environment, source: str) -> CodeType:
    """Return the code of a template, from the cache if possible."""
    if not is_cache_on():
        return own.compile(source)
    path, key = None, _key(source)
    # Without a home folder, write permission or disk space, the template is compiled again next time.
    with suppress(OSError):
        path = user_cache("templates") / f"{key}.code"
        held = path.read_bytes()
        if _digest(key, held[_DIGEST_BYTES:]) == held[:_DIGEST_BYTES]:
            kept: CodeType = marshal.loads(held[_DIGEST_BYTES:])
            return kept
    code = own.compile(source)
    if path is not None:
        with suppress(OSError):
            written = marshal.dumps(code)
            write_whole(path, _digest(key, written) + written)
            forget_oldest(path.parent, "*.code", CACHED_FILES)
    return code


def _digest(key: str, code: bytes) -> bytes:
    """Return a hash of the code and its key; the file name alone is not trusted."""
    return hashlib.sha256(key.encode() + code).digest()


def _key(source: str) -> str:
    """Return a hash of everything that the code of a template depends on."""
    jinja = installed_version("jinja2")
    return cache_key([source, Path(__file__).read_text(encoding="utf-8"), jinja, sys.version])


def _money(usd: float) -> str:
    """Return dollars as text without line breaks inside."""
    return money(usd).replace(" ", "\u00a0")


def _money3(usd: float) -> str:
    return money(usd, 3).replace(" ", "\u00a0")


def _figure3(value: float) -> str:
    return figure(value, 3)


def _signed(usd: float) -> str:
    return signed_money(usd).replace(" ", "\u00a0")


def _coded(text: str) -> Markup:
    """Return the text of a message with its parts in backquotes marked as code."""
    said = [str(escape(part)) for part in text.split("`")]
    if len(said) % 2 == 0:
        # An unclosed backquote stays as it is.
        return escape(text)
    return Markup("".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(said)))
