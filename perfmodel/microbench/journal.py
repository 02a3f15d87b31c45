"""Journal of measured points: one line of JSON each, written and flushed at once.

A run that was interrupted finds its points here. A line that was cut short by the interruption is dropped;
all others are whole. Lines say which device and which software they come from, and another one is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.perfmodel.microbench.points import Measurement, Point, point
from fleetplan.perfmodel.operators import OperatorKind

FORMAT: Final = 2
FILE_NAME: Final = "points.jsonl"


class _Line(TypedDict):
    operator: str
    dtype: str
    dims: dict[str, int]
    latency_us: float
    spread_ratio: float
    repeats: int
    power_w: float | None
    clock_mhz: float | None
    temperature_c: float | None
    control_us: float | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of all points of a journal; a journal of another origin is not continued.

    Attributes
    ----------
    hardware : str
        The part that plans know.
    device : str
        Name of the device.
    software : str
        Software of the kernels: torch with its version.
    reuse_mib : int
        Memory read between two uses of a weight. [MiB]
    """

    hardware: str
    device: str
    software: str
    reuse_mib: int

    def record(self) -> dict[str, object]:
        """As the first line of a journal has it."""
        return {
            "format": FORMAT,
            "hardware": self.hardware,
            "device": self.device,
            "software": self.software,
            "reuse_mib": self.reuse_mib,
        }


class Journal:
    """The points of one folder, in the order in which they were measured.

    Attributes
    ----------
    path : Path
        The file.
    measured : dict[Point, Measurement]
        Measurements.
    skipped : dict[Point, str]
        Points that cannot be measured, with reasons.

    Raises
    ------
    InputError
        The folder holds points of another device or software, or no journal.
    """

    def __init__(self, folder: Path, origin: Origin) -> None:
        self.path = folder / FILE_NAME
        self.measured: dict[Point, Measurement] = {}
        self.skipped: dict[Point, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if self.path.is_file():
            self._drop_cut_line()
        if self.path.is_file() and self.path.stat().st_size:
            self._read(origin)
        else:
            self._append(origin.record())

    def add(self, measurement: Measurement) -> None:
        """Keep a measurement in place of an earlier one of the point, on the disk before this returns."""
        self.measured[measurement.point] = measurement
        record: dict[str, object] = {
            **_of_point(measurement.point),
            "latency_us": measurement.latency_us,
            "spread_ratio": measurement.spread_ratio,
            "repeats": measurement.repeats,
            "power_w": measurement.power_w,
            "clock_mhz": measurement.clock_mhz,
            "temperature_c": measurement.temperature_c,
            "control_us": measurement.control_us,
        }
        self._append(record)

    def skip(self, skipped: Point, reason: str) -> None:
        """Keep the reason why a point cannot be measured."""
        self.skipped[skipped] = reason
        self._append({**_of_point(skipped), "skipped": reason})

    def knows(self, asked: Point) -> bool:
        """Whether a point needs no further attempt."""
        return asked in self.measured or asked in self.skipped

    def _append(self, record: Mapping[str, object]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _drop_cut_line(self) -> None:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))

    def _read(self, origin: Origin) -> None:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        try:
            records = [json.loads(line) for line in lines]
            self._check(dict(records[0]), origin)
            for record in records[1:]:
                self._take(record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "name another folder by --out"
            raise InputError(
                [Issue(str(self.path), 0, 0, "", "is not a journal of measurements", hint)]
            ) from error

    def _check(self, first: Mapping[str, object], origin: Origin) -> None:
        for key, value in origin.record().items():
            if first.get(key) != value:
                message = f"holds points of {key} {first.get(key)!r}, not of {value!r}"
                raise InputError([Issue(str(self.path), 1, 1, key, message, "name another folder by --out")])

    def _take(self, record: _Line | dict[str, str]) -> None:
        known = point(OperatorKind(str(record["operator"])), str(record["dtype"]), **record["dims"])  # type: ignore[arg-type]
        if "skipped" in record:
            self.skipped[known] = str(record["skipped"])  # type: ignore[typeddict-item]
            return
        self.measured[known] = Measurement(
            known,
            float(record["latency_us"]),
            float(record["spread_ratio"]),
            int(record["repeats"]),
            _optional(record["power_w"]),
            _optional(record["clock_mhz"]),
            _optional(record["temperature_c"]),
            _optional(record["control_us"]),
        )


def _of_point(each: Point) -> dict[str, object]:
    return {"operator": each.kind.value, "dtype": each.dtype, "dims": dict(each.dims)}


def _optional(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
