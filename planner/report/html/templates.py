"""Templates of pages: their filters, and the code that Jinja makes of them, made once and kept.

To make it takes a quarter of a second, half of what a small plan takes to be solved and written. What is kept
in the user's cache folder is named by the template, this module, Jinja and Python.
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

from fleetplan.fleet.figures import figure, how_sure_unmet, in_shown, money, percent, signed_money, span
from fleetplan.fleet.files import cache_key, forget_oldest, is_cache_on, user_cache, write_whole
from fleetplan.fleet.packages import installed_version
from fleetplan.planner.report.beyond_horizon import break_even
from fleetplan.planner.report.day_console import unproven
from fleetplan.planner.report.decision import asked_by

KEPT_FILES: Final = 32
"""Most templates whose code is kept, of which there are seven: those of other versions go first."""

_DIGEST_BYTES: Final = 32
"""Of SHA-256."""


@cache
def template(room: str, name: str) -> Template:
    """Return a template of a room: names are escaped when it is rendered, figures are as people read them."""
    own = _environment()
    source = files(room).joinpath(name).read_text(encoding="utf-8")
    return own.template_class.from_code(own, _code(own, source), own.make_globals(None))


@cache
def _environment() -> Environment:
    """Return the environment of all templates."""
    found = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # Jinja computes a filter of a constant when it makes code: the currency of that moment would stay.
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
    )
    return found


def _code(own: Environment, source: str) -> CodeType:
    """Code of a template, from the cache where it is there."""
    if not is_cache_on():
        return own.compile(source)
    path, key = None, _key(source)
    # No home, a folder that nobody may write, a full disk: it is made again the next time.
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
            forget_oldest(path.parent, "*.code", KEPT_FILES)
    return code


def _digest(key: str, code: bytes) -> bytes:
    """Hash of code and of what it is for: a file is not believed by its name."""
    return hashlib.sha256(key.encode() + code).digest()


def _key(source: str) -> str:
    """Hash of all that the code of a template depends on."""
    jinja = installed_version("jinja2")
    return cache_key([source, Path(__file__).read_text(encoding="utf-8"), jinja, sys.version])


def _money(usd: float) -> str:
    """Dollars that no line break divides."""
    return money(usd).replace(" ", "\u00a0")


def _money3(usd: float) -> str:
    return money(usd, 3).replace(" ", "\u00a0")


def _figure3(value: float) -> str:
    return figure(value, 3)


def _signed(usd: float) -> str:
    return signed_money(usd).replace(" ", "\u00a0")


def _coded(text: str) -> Markup:
    """Text of a message, what it has between backquotes as code."""
    said = [str(escape(part)) for part in text.split("`")]
    if len(said) % 2 == 0:
        # One is not closed: it stands for itself.
        return escape(text)
    return Markup("".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(said)))
