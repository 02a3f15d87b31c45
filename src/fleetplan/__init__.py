"""fleetplan: the cheapest accelerator fleet that serves every LLM within its latency targets.

    import fleetplan

    solved = fleetplan.solve("fleet.yaml")               # or a mapping with what would stand there
    solved.tco_usd, solved.gap, solved.placements        # pandas tables
    fleetplan.landscape("fleet.yaml", service="chat")    # every configuration that can pay off
    fleetplan.predict(cases)                             # latency and throughput of given configurations

The functions are loaded when they are used: importing fleetplan itself takes a moment.
"""

from __future__ import annotations

# Not `typing`, which takes longer than all else until the command line hears Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleetplan.planner.python import InfeasibleFleetError, SolvedFleet, landscape, predict, solve

__version__ = "0.1.0"

__all__ = ["InfeasibleFleetError", "SolvedFleet", "__version__", "landscape", "predict", "solve"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from fleetplan.planner import python as python_api  # noqa: PLC0415

        return getattr(python_api, name)
    raise AttributeError(f"module 'fleetplan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
