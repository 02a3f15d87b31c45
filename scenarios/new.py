"""The text of a new fleet file: a packaged template, its services replaced where presets are asked for."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from fleetplan.fleet.document import Node, read_fragment
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.schema.json_schema import FILE_NAME as SCHEMA_NAME
from fleetplan.scenarios.presets import PRESETS, TEMPLATES

# Growth of a preset's demand over the periods of a template; an assumption that is seen in the file.
GROWTH_RATIO_PER_PERIOD: Final = 0.1

# What the templates call the file to be written.
_FILE: Final = "FILE.yaml"
_FOLDER: Final = files("fleetplan.scenarios") / "templates"


def new_fleet(template: str, presets: Sequence[str], name: str, file_name: str) -> str:
    """Return a commented fleet file that is valid as it stands.

    Parameters
    ----------
    template : str
        One of `TEMPLATES`: where the supply is from, and the services without presets.
    presets : Sequence[str]
        Names from `PRESETS`, each a service; one that is named again counts once.
    name : str
        What reports call the plan.
    file_name : str
        The file that will be written, for the commands in its comments. The schema is expected beside it.

    Raises
    ------
    InputError
        For names that are not known or cannot be written.
    """
    issues = [_unknown("--template", template, TEMPLATES)] if template not in TEMPLATES else []
    issues += [_unknown("--preset", preset, tuple(PRESETS)) for preset in presets if preset not in PRESETS]
    # What does not print cannot be read in a report, and a line break would end the comment it stands in.
    for what, text in (("--name", name), (repr(file_name), file_name)):
        if not text.strip() or not text.isprintable():
            issues.append(
                Issue(what, 0, 0, "", f"{text!r} is not a name", "use one or more printable characters")
            )
    if issues:
        raise InputError(dict.fromkeys(issues))
    text = (_FOLDER / f"{template}.yaml").read_text("utf-8")
    if presets:
        text = _replaced(text, "services", _services(presets, read_fragment(text, template)))
    text = _replaced(text, "name", f"name: {json.dumps(name, ensure_ascii=False)}\n")
    _, _, body = text.partition("\n")
    return f"# yaml-language-server: $schema={SCHEMA_NAME}\n" + body.replace(_FILE, shlex.quote(file_name))


def _unknown(option: str, given: str, known: Sequence[str]) -> Issue:
    return Issue(
        option, 0, 0, "", f"there is no {option.removeprefix('--')} {given!r}", names_hint(given, known)
    )


def _replaced(text: str, key: str, block: str) -> str:
    """Return a file with the block of a top-level key replaced, up to the blank line or key that ends it."""
    pattern = rf"^{key}:.*\n(?:[ ]+.*\n)*"
    replaced, count = re.subn(pattern, lambda _: block, text, count=1, flags=re.MULTILINE)
    assert count == 1, f"a template has one block {key}"
    return replaced


def _services(presets: Sequence[str], root: Node) -> str:
    """Return the block `services`, its demand in the regions and periods of the template."""
    items = []
    for name in dict.fromkeys(presets):
        preset = PRESETS[name]
        items.append(preset.service(name, _demand(preset.peak_requests_per_s, root)))
    return "services:\n" + "\n".join(items)


def _demand(requests_per_s: float, root: Node) -> str:
    """Return the demand, evenly over the regions and growing over the periods."""
    regions = tuple(node.entries) if (node := root.child("regions")) is not None else ()
    horizon = root.child("horizon")
    listed = None if horizon is None else horizon.child("periods")
    periods = () if listed is None else tuple(str(item.value) for item in listed.items)
    each = requests_per_s / max(1, len(regions))
    by_period = [
        f"{period}: {each * (1 + GROWTH_RATIO_PER_PERIOD * i):g}" for i, period in enumerate(periods)
    ]
    one_region = "{" + ", ".join(by_period) + "}" if by_period else f"{each:g}"
    if not regions:
        return one_region
    return "{" + ", ".join(f"{region}: {one_region}" for region in regions) + "}"
