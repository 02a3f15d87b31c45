"""Options of `plan landscape`, validated and turned into a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fleetplan.fleet.errors import names_hint
from fleetplan.fleet.resolve import stored_weights
from fleetplan.perfmodel.landscape import LatencyTarget, RequestShape, SearchSpace
from fleetplan.planner.landscape.question import LandscapeOptions, Question, bad_option, question_of_options

PLOT_FORMATS = ("svg", "png")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Model options of the command line; None if not given.

    Attributes
    ----------
    model, hardware : str or None
        Names; several hardware names separated by commas.
    input_tokens, output_tokens, context_tokens : int or None
        Lengths. [tokens]
    ttft_ms, tpot_ms : float or None
        Limits. [ms]
    weights : str or None
        Data types separated by commas; None for that of the model's checkpoint.
    kv : str
        Data types of the KV cache, separated by commas.
    framework, prices : str
        Framework whose operators are used, and column of the price book.
    """

    model: str | None
    hardware: str | None
    input_tokens: int | None
    output_tokens: int | None
    context_tokens: int | None
    ttft_ms: float | None
    tpot_ms: float | None
    weights: str | None
    kv: str
    framework: str
    prices: str

    def question(self, search: SearchSpace) -> Question:
        """Return the question.

        Raises
        ------
        InputError
            If an option is missing or wrong.
        """
        if (
            self.model is None
            or self.hardware is None
            or self.input_tokens is None
            or self.output_tokens is None
        ):
            given = {
                "--model": self.model,
                "--hardware": self.hardware,
                "--input": self.input_tokens,
                "--output": self.output_tokens,
            }
            missing = ", ".join(name for name, value in given.items() if value is None)
            raise bad_option(missing, "is needed", "or give a fleet file with --service")
        if self.context_tokens is not None and self.context_tokens < self.input_tokens:
            raise bad_option(
                "--context", f"{self.context_tokens} is less than the {self.input_tokens} of --input"
            )
        weights = stored_weights(self.model, None, Path()) if self.weights is None else self.weights
        asked = LandscapeOptions(
            self.model,
            _names("--hardware", self.hardware),
            RequestShape(self.input_tokens, self.output_tokens, self.context_tokens),
            LatencyTarget(self.ttft_ms, self.tpot_ms),
            _names("--weights", weights),
            _names("--kv", self.kv),
            self.framework,
            self.prices,
        )
        return question_of_options(asked, search)

    def refuse_beside_fleet(self) -> None:
        """Reject options that the fleet file already answers.

        Raises
        ------
        InputError
            If one of them was given.
        """
        given = {
            "--model": self.model,
            "--hardware": self.hardware,
            "--input": self.input_tokens,
            "--output": self.output_tokens,
            "--context": self.context_tokens,
            "--ttft": self.ttft_ms,
            "--tpot": self.tpot_ms,
        }
        both = [name for name, value in given.items() if value is not None]
        if both:
            hint = "change it with --set services.NAME.key=value"
            raise bad_option(", ".join(both), "is already in the fleet file", hint)


def refuse_without_fleet(
    service: str | None, scenarios: Sequence[str] | None, assignments: Sequence[str] | None
) -> None:
    """Reject options that need a fleet file if there is none.

    Raises
    ------
    InputError
        If one of them was given.
    """
    given = {"--service": service, "--scenario": scenarios, "--set": assignments}
    without = [name for name, value in given.items() if value]
    if without:
        raise bad_option(", ".join(without), "needs a fleet file", "for example plan landscape fleet.yaml")


def search_of(max_accelerators: int | None, every_batch: int | None) -> SearchSpace:
    """Return the search space: the usual batch sizes, or every one up to a limit."""
    if every_batch is None:
        return SearchSpace(max_accelerators=max_accelerators)
    batches = tuple(range(1, every_batch + 1))
    return SearchSpace(max_accelerators=max_accelerators, prefill_batches=batches[:8], decode_batches=batches)


def write_format(name: str) -> str:
    """Return the format of the figures.

    Raises
    ------
    InputError
        If it is neither svg nor png.
    """
    if name not in PLOT_FORMATS:
        raise bad_option("--plot-format", f"there is no {name!r}", names_hint(name, PLOT_FORMATS))
    return name


def _names(option: str, text: str) -> tuple[str, ...]:
    """Split names at commas; at least one is required."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise bad_option(option, "names nothing")
    return names
