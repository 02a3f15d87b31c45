"""The snippets of docs/services-and-regions.md are parts of a fleet file."""

import re
from pathlib import Path

import pytest

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.scenarios.load import load_fleet

PAGE = Path(__file__).parents[2] / "docs" / "services-and-regions.md"
SNIPPETS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)

REST = {
    "version": 1,
    "regions": {"us-east": {}, "us-west": {}, "eu-west": {}},
    "pools": [
        {"name": "east-h100", "region": "us-east", "hardware": "H100-SXM", "hosts": 1},
        {"name": "east-h200", "region": "us-east", "hardware": "H200-SXM", "hosts": 1},
    ],
}
SERVICE = {
    "name": "assistant",
    "model": "llama3-70b",
    "workload": {"input_tokens": 100, "output_tokens": 10},
    "demand": {"us-east": 1, "eu-west": 1},
}


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_snippet_is_read(snippet: str, tmp_path: Path) -> None:
    part = read_yaml(snippet)
    services = [
        {**SERVICE, **service} if service["name"] == "assistant" else service
        for service in part.get("services", [SERVICE])
    ]
    pools = [{**pool, "rented": {"usd_per_accelerator_hour": 2}} for pool in REST["pools"]]
    regions = {**REST["regions"], **part.get("regions", {})}
    whole = {**REST, **part, "regions": regions, "pools": pools, "services": services}
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml_text(whole), encoding="utf-8")
    assert load_fleet(path).warnings == ()


def test_the_page_shows_what_it_describes() -> None:
    assert len(SNIPPETS) == 5
