"""The launch command of a replica in the syntax of its framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.landscape import LayoutSetting, runs_on, stages_problem
from fleetplan.planner.export.launch.checkpoints import RefusedError
from fleetplan.planner.export.launch.deployments import LaunchedGroup, NotLaunched
from fleetplan.planner.export.launch.replica import Launch
from fleetplan.planner.export.launch.sglang import sglang
from fleetplan.planner.export.launch.tensorrt_llm import tensorrt_llm
from fleetplan.planner.export.launch.vllm import vllm

WRITERS: Final[Mapping[str, Callable[[LaunchedGroup], Launch]]] = {
    "vllm": vllm,
    "sglang": sglang,
    "trtllm": tensorrt_llm,
}

FRAMEWORKS: Final = tuple(WRITERS)


def launch(
    deployment: LaunchedGroup, framework: str, writer: Callable[[LaunchedGroup], Launch] | None = None
) -> Launch | NotLaunched:
    """Return the launch of a replica, or the reason why the framework cannot run it.

    Parameters
    ----------
    deployment : LaunchedGroup
        Deployment to launch.
    framework : str
        vllm, sglang or trtllm.
    writer : callable or None
        Writes the options of another version; None uses the version in tools.yaml.
    """
    vendor, phase = deployment.hardware.vendor, deployment.placement.phase
    setting = LayoutSetting(vendor, deployment.prompt_stages)
    try:
        if not runs_on(framework, vendor):
            raise RefusedError(f"{framework} does not run on parts of {vendor}")
        if problem := stages_problem(framework, deployment.layout, phase, setting):
            raise RefusedError(problem)
        if not deployment.fills_hosts_evenly:
            raise RefusedError(
                f"{counted(deployment.layout.accelerators, 'accelerator', 'do')} not fill "
                f"{counted(deployment.hosts, 'host')} evenly, "
                f"and every host starts equally many ranks"
            )
        return (writer or WRITERS[framework])(deployment)
    except RefusedError as refused:
        return NotLaunched(deployment.placement, str(refused))
