"""Configs of published models: the real library against a local hub, and without the library."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.warm import ran

from fleetplan.fleet.catalog.models import model_catalog
from fleetplan.planner.cli import main

CONFIG = json.dumps(dict(model_catalog()["meta-llama/Llama-3.1-8B"].config)).encode()
COMMIT = "0" * 40


@contextmanager
def hub(content: bytes | None) -> Iterator[str]:
    """A hub with one file at any id; None answers that there is none."""

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(404 if content is None else 200)
            self.send_header("ETag", '"etag"')
            self.send_header("X-Repo-Commit", COMMIT)
            if content is None:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(content or b"")

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def fetch(endpoint: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_DISABLE_XET": "1",
    }
    arguments = ["import", "model", "someone/published-8b", "--out", str(folder / "config.json"), *words]
    return ran(["-m", "fleetplan.planner", *arguments], text=True, env=environment)


needs_library = pytest.mark.skipif(
    importlib.util.find_spec("huggingface_hub") is None, reason="huggingface_hub is not installed"
)


@needs_library
def test_a_published_config_is_fetched_and_described(tmp_path: Path) -> None:
    with hub(CONFIG) as endpoint:
        done = fetch(endpoint, tmp_path, "--revision", "main")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "config.json").read_bytes() == CONFIG
    assert "config.json: 32 layers, dense" in done.stdout


@needs_library
@pytest.mark.parametrize("content", [None, b"{}", b"no json"])
def test_what_the_hub_does_not_have_is_one_sentence(content: bytes | None, tmp_path: Path) -> None:
    with hub(content) as endpoint:
        done = fetch(endpoint, tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "config.json").exists()


@needs_library
def test_without_a_network_there_is_one_sentence(tmp_path: Path) -> None:
    done = fetch("http://127.0.0.1:9", tmp_path)
    assert done.returncode == 2
    assert "someone/published-8b: gives no config.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_library_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(SystemExit) as ended:
        main(["import", "model", "someone/published-8b", "--out", str(tmp_path / "config.json")])
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "huggingface_hub is missing; pip install 'fleetplan[hub]'" in said
