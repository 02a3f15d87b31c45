"""How many there are of something, in words: one host, but two hosts."""

from __future__ import annotations

from typing import Final

_SINGULAR_VERBS: Final = {"are": "is", "were": "was", "have": "has", "do": "does"}


def counted(count: float, noun: str, verb: str = "") -> str:
    """Write how many there are of something: `1 host`, `2 hosts`, `1,200 smaller changes`.

    Parameters
    ----------
    count : float
        How many; what is no whole number has four significant digits.
    noun : str
        One of them, in words of which the last one changes.
    verb : str
        What several of them do, which follows the noun: `start` gives `1 accelerator starts`.
    """
    number = f"{count:,.0f}" if count == round(count) else f"{count:.4g}"
    words = [number, noun if count == 1 else plural(noun)]
    return " ".join([*words, agreeing(count, verb)] if verb else words)


def agreeing(count: float, verb: str) -> str:
    """What so many do: `are` for two, `is` for one; `verb` is what several do."""
    return _SINGULAR_VERBS.get(verb, f"{verb}s") if count == 1 else verb


def plural(noun: str) -> str:
    """The plural of a noun, or of words that end with one."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"
