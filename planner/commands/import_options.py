"""Options shared by the commands of `plan import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Token = Annotated[Path | None, typer.Option(help="file with a bearer token for the server", metavar="FILE")]
Fragment = Annotated[Path, typer.Option(help="fragment of a fleet file to write", metavar="FRAGMENT.yaml")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="day of the file, such as 2026-11-24; default: its date")
]
NodeRegion = Annotated[str | None, typer.Option(help="region of all nodes, by the fleet's name")]
NodeKind = Annotated[str | None, typer.Option(help="hardware of nodes that do not state it")]
CapexOfHost = Annotated[float | None, typer.Option(help="purchase price of a host [USD]", min=0)]
HourlyRent = Annotated[float | None, typer.Option(help="rent per accelerator-hour [USD/h]", min=0)]
WantedRegions = Annotated[
    list[str] | None,
    typer.Option("--region", help="a wanted region, as THEIRS or THEIRS=OURS; repeatable; default: all"),
]
WantedParts = Annotated[
    list[str] | None, typer.Option("--hardware", help="a wanted part; repeatable; default: all")
]
SpotShare = Annotated[
    float | None,
    typer.Option(help="take spot prices, for at most this share of a service's demand", min=0, max=1),
]
