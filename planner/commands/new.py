"""`plan new` and `plan schema`: write a first fleet file, and the JSON Schema for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.scenarios.presets import PRESETS, TEMPLATES


def _templates(incomplete: str) -> list[str]:
    return [name for name in TEMPLATES if name.startswith(incomplete)]


def _presets(incomplete: str) -> list[str]:
    return [name for name in PRESETS if name.startswith(incomplete)]


def new_fleet_file(
    file: Annotated[Path, typer.Argument(help="the file to write", metavar="FILE.yaml", show_default=False)],
    template: Annotated[
        str,
        typer.Option(
            help="template of supply, regions and periods",
            metavar="|".join(TEMPLATES),
            autocompletion=_templates,
        ),
    ] = TEMPLATES[0],
    preset: Annotated[
        list[str] | None,
        typer.Option(
            help="a service that replaces those of the template; repeatable",
            metavar="|".join(PRESETS),
            autocompletion=_presets,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="name of the plan in reports (default: the file's name)")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite existing files")] = False,
) -> None:
    """Write a commented fleet file to start from.

    Also writes the schema that the first line refers to.

    Presets are the services of Table 2 in Meta, "Optimizing Deployment Configurations for LLM Inference". The
    file is a valid fleet; an existing file is not overwritten.

    Example: plan new fleet.yaml --template quarterly --preset text-agent --preset safety
    """
    from fleetplan.fleet.errors import InputError, Issue
    from fleetplan.fleet.schema import schema_text
    from fleetplan.fleet.schema.json_schema import FILE_NAME
    from fleetplan.planner.export.new_file import write_new
    from fleetplan.scenarios.new import new_fleet

    if file.suffix.lower() not in {".yaml", ".yml"}:
        raise InputError(
            [Issue(str(file), 0, 0, "", "a fleet file ends in .yaml", f"name it {file.stem}.yaml")]
        )
    text = new_fleet(template, preset or (), file.stem if name is None else name, file.name)
    write_new(file, text, over=force)
    typer.echo(f"written to {file}; try: plan check {file}", err=True)
    schema = file.with_name(FILE_NAME)
    if force or not schema.exists():
        write_new(schema, schema_text(), over=force)
        typer.echo(f"written to {schema}: completion and checks in editors with YAML support", err=True)


def print_schema(
    out: Annotated[
        Path | None, typer.Option(help="output file; overwritten if it exists", metavar="FILE")
    ] = None,
) -> None:
    """Print the JSON Schema of fleet files.

    For editors and CI (draft 7).

    Example: plan schema --out fleet.schema.json
    """
    from fleetplan.fleet.schema import schema_text
    from fleetplan.planner.export.new_file import write_new

    if out is None:
        typer.echo(schema_text(), nl=False)
    else:
        write_new(out, schema_text(), over=True)
        typer.echo(f"written to {out}", err=True)
