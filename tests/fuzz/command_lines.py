"""Random command lines of every command, written from the definition of its options: wrong and right values.

Files are a small fleet with its plan, which are answered at once, and others that no command takes.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fleetplan.planner import cli
from fleetplan.planner.commands.shared import ExitCode
from tests.fuzz.commands import CommandAnswer, run
from tests.fuzz.right_values import ALWAYS, FLEET_FILE, ONE_OF, PLAN_FILE, RIGHT_FILES, right_value

TEXTS: Final = (
    "", " ", "-", "--", "0", "-1", "1e999", "nan", "inf", "1,2", "a=b", "a.b=1", "x" * 5000, "\x00", "a\x00b",
    "\x1b[31m", "\u202e", "\ud83d", "café", "表", "../..", "{", "[1", "'", '"', "%", "150%", "9" * 400,
    "true",
)  # fmt: skip
"""Values that hardly any option takes."""

NUMBERS: Final = ("-1", "0", "1", "1.5", "-0", "1e9", "1e-9", "99999999999999999999", "٣")

FILES: Final = {
    "empty.yaml": b"",
    "text.yaml": b"version: 1\nservices: 3\n",
    "broken.yaml": b"a: [1,\n",
    "binary.json": bytes(range(256)),
    "list.json": b"[1, 2]",
    "deep.json": b"[" * 5000,
    "table.csv": b"a,b\n1\n",
}
"""Files that are there, and no input of any command."""

BLOCKING: Final = ("serve",)
"""A command that goes on until it is stopped: it gets no fleet that it could serve."""

WANTED: Final = 0.3
"""How often an option is given at the most."""

NEVER_RUN: Final = (("optables", "measure"),)
"""It takes twenty seconds of a core even where it may begin no point."""

DEEP: Final = 0.5
"""Share of the lines whose values are nearly all right, so that they get past the reading of options."""

RIGHT_SHARE: Final = 0.93
"""How many values of such a line are right."""

CODES: Final = tuple(set(ExitCode) - {ExitCode.BUG})


@dataclass(frozen=True)
class Command:
    """A command with its way from `plan`, and its parameters."""

    way: tuple[str, ...]
    parameters: tuple[Any, ...]


def commands() -> Iterator[Command]:
    """Yield every command of `plan`."""
    yield from _commands_of((), cli._program())


def _commands_of(way: tuple[str, ...], command: object) -> Iterator[Command]:
    below = getattr(command, "commands", None)
    if below is None:
        yield Command(way, tuple(getattr(command, "params", ())))
        return
    for name, each in below.items():
        if (*way, name) not in NEVER_RUN:
            yield from _commands_of((*way, name), each)


def command_line(command: Command, dice: random.Random) -> list[str]:
    """Return random arguments of a command."""
    words: list[str] = []
    # With few of them each is looked at: the first mistake ends a command.
    wanted = dice.choice((0.05, 0.1, WANTED))
    deep = RIGHT_SHARE if dice.random() < DEEP and command.way != BLOCKING else 0.0
    for parameter in command.parameters:
        names = (*getattr(parameter, "opts", ()), *getattr(parameter, "secondary_opts", ()))
        if not any(name.startswith("-") for name in names):
            right = (FLEET_FILE, PLAN_FILE) if command.way != BLOCKING else ()
            count = dice.choice((1, 1, 1, 1, 1, 1, 0, 2))
            if dice.random() < deep:
                count = int(parameter.required)
            words += [_value(command.way, parameter, dice, deep, right) for _ in range(count)]
        elif dice.random() < wanted or parameter.required:
            words.append(dice.choice(names))
            if not getattr(parameter, "is_flag", False):
                words.append(_value(command.way, parameter, dice, deep))
    if dice.random() < deep:
        words += dice.choice(ONE_OF.get(command.way, ((),)))
    if dice.random() < 0.1 * (1 - deep):
        words.insert(dice.randrange(len(words) + 1), dice.choice(("--nope", "-z", *TEXTS)))
    return [*command.way, *words, *ALWAYS.get(command.way, ())]


def _value(
    way: tuple[str, ...], parameter: Any, dice: random.Random, deep: float, right: tuple[str, ...] = ()
) -> str:
    known = right_value(way, parameter)
    if known and dice.random() < deep:
        return dice.choice(known)
    pools: list[tuple[str, ...]] = [TEXTS, tuple(FILES), ("missing.yaml", ".", "missing/folder/file.json")]
    if right:
        pools += [right] * (4 * len(pools))
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if kind in (int, float, int | None, float | None):
        pools += [NUMBERS] * len(pools)
    return dice.choice(dice.choice(pools))


def small_fleet(folder: Path) -> None:
    """Write the small fleet, its plan, and what else commands take.

    Raises
    ------
    AssertionError
        It has no plan.
    """
    for name, text in RIGHT_FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with contextlib.chdir(folder):
        answer = run(("solve", FLEET_FILE, "--out", "out"))
    assert answer.code == ExitCode.FOUND, answer.errors


def tried(command: Command, seed: int, small: Path, folder: Path) -> tuple[list[str], str]:
    """Run the command line of a seed; return it with what is wrong about its end, or nothing.

    Parameters
    ----------
    command, seed : Command, int
        What is tried.
    small, folder : Path
        The folder of the small fleet, and one for a copy of it.
    """
    dice = random.Random(f"{' '.join(command.way)} {seed}")
    words = command_line(command, dice)
    prepare(small, folder)
    before = contents(folder)
    with contextlib.chdir(folder):
        try:
            answer = run(words)
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return words, f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {error}"
    refused = answer.code == ExitCode.BAD_INPUT
    return words, _wrong(answer) or ("a file is left" if refused and contents(folder) != before else "")


def prepare(small: Path, folder: Path) -> None:
    """Copy the small fleet into a folder, beside files that are no input of any command."""
    shutil.copytree(small, folder, dirs_exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)


def _wrong(answer: CommandAnswer) -> str:
    if answer.code not in CODES:
        return f"exit code {answer.code}: {answer.errors.strip()[-300:]}"
    said = answer.out + answer.errors
    if "Traceback" in said:
        return "a traceback"
    # That plans differ is the result that was asked for.
    if answer.code not in (ExitCode.FOUND, ExitCode.DIFFERENT) and not answer.errors.strip():
        return "not a word"
    if any(ord(each) < 32 and each not in "\n\t\r" for each in said):
        return f"control characters: {said[-200:]!r}"
    return ""


def contents(folder: Path) -> list[str]:
    """Return the names of all that is in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
