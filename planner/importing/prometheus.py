"""Range queries of Prometheus: the queries, answers of a server, and answers saved as JSON."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.errors import InputError, Issue, brief, names_hint
from fleetplan.fleet.input_files import MAX_CONFIG_BYTES, NotTextError, is_file, parse_json, read_text
from fleetplan.fleet.units import HOURS_PER_DAY, SECONDS_PER_HOUR
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.planner.importing.records import Record, at

MAX_ANSWER_BYTES: Final = 8 * MAX_CONFIG_BYTES
"""Maximum size of one answer of a server or file. [B]"""
MAX_TOKEN_BYTES: Final = 64 * 1024
"""Maximum size of a file with a bearer token; those of Kubernetes have some kilobytes. [B]"""
TIMEOUT_S: Final = 60.0
MOST_POINTS: Final = 11_000
"""Maximum number of points of a series in an answer of Prometheus."""

_CLASSIC_HINT: Final = "let Prometheus keep classic ones too: `always_scrape_classic_histograms: true`"
HISTOGRAMS: Final = ("prompt_tokens", "output_tokens")
COUNTERS: Final = ("cache_hits", "cache_queries")
LATENCIES: Final = ("_sum", "_count")
"""Parts of a histogram whose ratio is its mean."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer: its labels, times [s] and values, both of shape (n_points,)."""

    labels: Mapping[str, str]
    time_s: FloatArray
    value: FloatArray


Answers = Mapping[str, tuple[Series, ...]]
"""Series by the name of the query."""


def system_metrics(system: str) -> Mapping[str, Any]:
    """Return the metric names of a system from metrics.yaml.

    Raises
    ------
    InputError
        The system is unknown.
    """
    known = _table()
    if system not in known:
        hint = names_hint(system, tuple(known))
        raise InputError([Issue("--system", 0, 0, "", f"there is no system {system!r}", hint)])
    found: Mapping[str, Any] = known[system]
    return found


@cache
def _table() -> dict[str, Any]:
    text = (files("fleetplan.planner.importing") / "metrics.yaml").read_text("utf-8")
    found: dict[str, Any] = read_yaml(text)
    return found


def queries(system: str, region_label: str | None, step_s: int) -> dict[str, str]:
    """Return the PromQL of every range query by its name, which is also the file name of its answer.

    Parameters
    ----------
    system : str
        A key of metrics.yaml.
    region_label : str or None
        Label with the region of a series; None if all belong to one region.
    step_s : int
        Step of the range, and window of rates. [s]
    """
    metrics = system_metrics(system)
    service = metrics["service"]
    by = service if region_label is None else f"{service}, {region_label}"
    counter = metrics["requests"]["counter"]
    found = {"requests": f"sum by ({by}) (rate({counter}[{step_s}s]))"}
    for name in HISTOGRAMS:
        if name in metrics:
            metric, labels = metrics[name]["histogram"], _selector(metrics[name].get("labels", {}))
            found[name] = f"sum by ({service}, le) (increase({metric}_bucket{labels}[{step_s}s]))"
            found[f"{name}_sum"] = f"sum by ({service}) (increase({metric}_sum{labels}[{step_s}s]))"
    for name in COUNTERS:
        if name in metrics:
            found[name] = f"sum by ({service}) (increase({metrics[name]['counter']}[{step_s}s]))"
    return found


def measured_queries(system: str, region_label: str | None, step_s: int) -> dict[str, str]:
    """Return the PromQL of requests and latencies as in `queries`, for the actuals of a plan."""
    metrics = system_metrics(system)
    service = metrics["service"]
    found = {"requests": queries(system, region_label, step_s)["requests"]}
    for name in ("ttft", "tpot"):
        for kind in LATENCIES:
            metric = metrics[name]["histogram"]
            found[f"{name}{kind}"] = f"sum by ({service}) (increase({metric}{kind}[{step_s}s]))"
    return found


def _selector(labels: Mapping[str, str]) -> str:
    inner = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def ask(
    server: str, asked: Mapping[str, str], start_s: float, end_s: float, step_s: int, token: str = ""
) -> dict[str, str]:
    """Return a server's answers to range queries as text, by the name of the query.

    Parameters
    ----------
    server : str
        URL, such as http://localhost:9090.
    asked : Mapping[str, str]
        PromQL by name.
    start_s, end_s : float
        Range of times since 1970. [s]
    step_s : int
        Step of the range. [s]
    token : str
        Bearer token; empty for none. A name and password are part of the URL.

    Raises
    ------
    InputError
        The range has too many steps, or the server does not answer.
    """
    if (end_s - start_s) / step_s > MOST_POINTS:
        longest = MOST_POINTS * step_s / 86_400
        raise InputError(
            [Issue("--days", 0, 0, "", f"has more than {MOST_POINTS:,} steps", f"up to {longest:.3g} days")]
        )
    shown, login = without_login(server)
    if login and token:
        hint = "give one of them"
        raise InputError([Issue("--token-file", 0, 0, "", f"is given with a password for {shown}", hint)])
    if token:
        login = f"Bearer {token}"
    answers = {}
    for name, query in asked.items():
        words = {"query": query, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": str(step_s)}
        url = f"{shown.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(words)}"
        answers[name] = _get(shown, url, login)
    return answers


def without_login(server: str) -> tuple[str, str]:
    """Return a URL without its name and password, and these as an HTTP header, empty without any."""
    try:
        parts = urllib.parse.urlsplit(server)
    except ValueError:
        return server, ""
    login, at_sign, host = parts.netloc.rpartition("@")
    if not at_sign:
        return server, ""
    header = f"Basic {base64.b64encode(urllib.parse.unquote(login).encode()).decode()}"
    return urllib.parse.urlunsplit(parts._replace(netloc=host)), header


def _get(server: str, url: str, login: str) -> str:
    reason = ""
    try:
        request = urllib.request.Request(url, headers={"Authorization": login} if login else {})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(MAX_ANSWER_BYTES + 1)
        if len(data) <= MAX_ANSWER_BYTES:
            return data.decode("utf-8")
        reason = f"an answer is larger than {MAX_ANSWER_BYTES // 2**20} MiB"
    except urllib.error.HTTPError as error:
        with error:
            reason = f"{error.code} {error.reason}: {error.read(500).decode('utf-8', 'replace')}"
    except (OSError, ValueError, UnicodeDecodeError) as error:
        reason = str(getattr(error, "reason", error))
    hint = "give the URL of a Prometheus server, such as http://localhost:9090"
    raise InputError([Issue(server, 0, 0, "", brief(f"gives no answer: {reason}"), hint)])


def token_of(file: Path | None) -> str:
    """Return the bearer token in a file; empty without a file.

    Raises
    ------
    InputError
        The file is unreadable or contains no token: it is empty, or has several words or lines.
    """
    if file is None:
        return ""
    try:
        found = read_text(file, MAX_TOKEN_BYTES).strip()
    except (OSError, NotTextError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError([Issue(str(file), 0, 0, "--token-file", f"cannot be read: {reason}")]) from error
    if not found or not found.isascii() or not found.isprintable() or " " in found:
        raise InputError(
            [Issue(str(file), 1, 1, "--token-file", "contains no token", "it must be one word of ASCII")]
        )
    return found


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Options for reading servers.

    Attributes
    ----------
    system : str or None
        System whose metrics to read.
    days : float
        Days of history to query from a server. [days]
    step_s : int
        Step of the range. [s]
    region_label : str or None
        Label with the name of the region.
    token_file : Path or None
        File with a bearer token for a server.
    """

    system: str | None
    days: float
    step_s: int
    region_label: str | None
    token_file: Path | None


def answers_of(
    source: str,
    asked: Mapping[str, str],
    days: float,
    step_s: int,
    token_file: Path | None = None,
    needed: str = "requests",
) -> dict[str, str]:
    """Return the answers of a server up to now, or those in a folder, by the name of the query.

    Parameters
    ----------
    source : str
        URL or folder.
    asked : Mapping[str, str]
        PromQL by name.
    days : float
        Days of history to query from a server. [days]
    step_s : int
        Step of the range. [s]
    token_file : Path, optional
        File with a bearer token.
    needed : str
        Query whose answer a folder must contain.

    Raises
    ------
    InputError
        As in `ask`, `saved_answers` and `token_of`.
    """
    token = token_of(token_file)
    if not source.startswith(("http://", "https://")):
        return saved_answers(Path(source), asked, needed)
    end_s = time.time()
    return ask(source, asked, end_s - days * HOURS_PER_DAY * SECONDS_PER_HOUR, end_s, step_s, token)


def saved_answers(folder: Path, asked: Mapping[str, str], needed: str) -> dict[str, str]:
    """Return the answers in NAME.json of a folder for each query; that of `needed` is required.

    Raises
    ------
    InputError
        The file of `needed` is missing, or a file is unreadable.
    """
    found = {}
    for name in asked:
        path = folder / f"{name}.json"
        if name != needed and not is_file(path):
            continue
        try:
            found[name] = read_text(path, MAX_ANSWER_BYTES)
        except (OSError, NotTextError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            hint = "`plan import prometheus --queries` prints what to save there"
            raise InputError([Issue(str(path), 0, 0, "", f"cannot be read: {reason}", hint)]) from error
    return found


def parse_answers(texts: Mapping[str, str], source: str) -> Answers:
    """Return the series of answers.

    Parameters
    ----------
    texts : Mapping[str, str]
        Answers by the name of the query.
    source : str
        Name of the server or folder, for errors.

    Raises
    ------
    InputError
        An answer is not JSON, is an error of the server, or is not a matrix.
    """
    return {name: tuple(_series(text, f"{source} {name}")) for name, text in texts.items()}


def _series(text: str, place: str) -> Iterator[Series]:
    try:
        document = parse_json(text)
    except json.JSONDecodeError as error:
        raise InputError(
            [Issue(place, error.lineno, error.colno, "", f"is not JSON: {error.msg}")]
        ) from error
    record: Record = document if isinstance(document, Mapping) else {}
    if record.get("status") != "success" or at(record, "data", "resultType") != "matrix":
        said = record.get("error") or "is not an answer to a range query"
        hint = "what /api/v1/query_range answers has status success and resultType matrix"
        raise InputError([Issue(place, 1, 1, "", brief(str(said)), hint)])
    result = at(record, "data", "result")
    for position, each in enumerate(result if isinstance(result, list) else []):
        if isinstance(each, Mapping) and each.get("histograms") and not each.get("values"):
            message = f"series {position + 1} holds native histograms; buckets are read as series with `le`"
            raise InputError([Issue(place, 1, 1, "", message, _CLASSIC_HINT)])
        try:
            pairs = [(float(time), float(value)) for time, value in each["values"]]
            labels = {str(name): str(value) for name, value in each["metric"].items()}
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            message = f"series {position + 1} has no labels or no pairs of time and value"
            raise InputError([Issue(place, 1, 1, "", message)]) from error
        points = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        # A rate over no requests is NaN.
        known = np.isfinite(points).all(axis=1) & (points[:, 1] >= 0)
        yield Series(labels, points[known, 0], points[known, 1])
