"""The launch of a replica: its command, files, notes and hosts."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.techniques.expert_routing import EXPERTS_PER_REDUNDANT, USUAL_HOST_ACCELERATORS
from fleetplan.planner.export.launch.checkpoints import RefusedError, unsaid_weights
from fleetplan.planner.export.launch.deployments import LaunchedGroup
from fleetplan.planner.export.launch.lengths import longest_sequence
from fleetplan.planner.export.launch.technique_notes import technique_notes
from fleetplan.planner.export.launch.tools import tools

LOAD_BALANCERS: Final = {
    "vllm": "--enable-eplb with num_redundant_experts in --eplb-config",
    "sglang": "--enable-eplb with --ep-num-redundant-experts, and --moe-a2a-backend deepep",
    "trtllm": "moe_config.load_balancer with num_slots in the file",
}
"""Options that start the load balancer of experts. Sources: vLLM, vllm/config/parallel.py (EPLBConfig);
SGLang, Server Arguments; TensorRT-LLM, MoeConfig and MoeLoadBalancerConfig. Read in November 2026.
"""

BALANCED_EXPERTS: Final = (
    "experts over several hosts: unless techniques.experts.balance is none, the plan assumes a load balancer "
    "that copies one expert in {each}, or the number in redundant_experts; add {options}"
)

OWN_BATCHES: Final = (
    "each class of requests was planned with a separate batch ({batches}): {option} is the largest one, as "
    "in `plan replay`; a replica that serves more of the other classes than planned has a higher TPOT"
)

UNKNOWN_BATCHES: Final = (
    "each class of requests was planned with a separate batch, which a plan of this format does not state: "
    "without {option}, bursts may run more sequences at a higher TPOT; solve it again"
)

ROUTED: Final = "prefill and decode servers need a router that sends each request to a pair of them"

MOMENTS: Final = "replicas by moment: {moments}; the largest number is set here: scale it"

CROWDED: Final = (
    "the replicas need {accelerators} more than pool {pool} has, because they are "
    "busiest at different moments"
)

COORDINATION_PORT: Final = 29500
"""Port at which the hosts of a replica meet: the documented default of torch.distributed."""


@dataclass(frozen=True, slots=True)
class Host:
    """One host of a replica, as named in its command.

    Attributes
    ----------
    rank : str
        Rank from 0 on, or the variable for it.
    leader : str
        Address of the host with rank 0.
    """

    rank: str
    leader: str


LEADER: Final = Host("0", "$LEADER_ADDRESS")
FOLLOWER: Final = Host("$NODE_RANK", "$LEADER_ADDRESS")
"""Hosts in a launch script; the user sets both variables."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch of one replica.

    Attributes
    ----------
    framework : str
        vllm, sglang or trtllm.
    words : tuple[str, ...]
        Command with its options, without those specific to a host.
    config : Mapping[str, object]
        Content of the file that the command names; empty without one.
    notes : tuple[str, ...]
        Conditions that the options do not express.
    hosts : int
        Hosts per replica.
    on_host : Callable[[Host], tuple[str, ...]] or None
        Returns the command of one of several hosts; None if one command starts all of them.
    own_address : str or None
        Variable for the address of the host or pod; None if the server finds it.
    own_port : str or None
        Option or variable for the port at which servers of the other phase reach it.
    by_hand : tuple[str, ...]
        Further steps if no operator performs them.
    """

    framework: str
    words: tuple[str, ...]
    config: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    hosts: int = 1
    on_host: Callable[[Host], tuple[str, ...]] | None = None
    own_address: str | None = None
    own_port: str | None = None
    by_hand: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Shell commands: one, or one for the first host and one for the others.

        A server that listens only on its own host by default is told to accept others.
        """
        listening = tools().framework(self.framework).listening
        if self.hosts == 1 or self.on_host is None:
            return shell_line((*self.words, *listening))
        return "\n".join(
            [
                "# on its first host, whose address LEADER_ADDRESS is:",
                shell_line((*self.on_host(LEADER), *listening)),
                f"# on each other host, with NODE_RANK from 1 to {self.hosts - 1}:",
                shell_line((*self.on_host(FOLLOWER), *listening)),
            ]
        )

    @property
    def config_text(self) -> str:
        """Content of the file as YAML; empty without one."""
        return yaml_text(dict(self.config), sort_keys=True) if self.config else ""


_VARIABLE: Final = re.compile(r"\$(LEADER_ADDRESS|NODE_RANK|LWS_LEADER_ADDRESS|LWS_WORKER_INDEX)(:[0-9]+)?")
"""Words that a shell expands, with an optional port."""


def shell_line(words: tuple[str, ...]) -> str:
    """Return one line of shell; the variables of a `Host` stay for the shell to expand."""
    return " ".join(f'"{word}"' if _VARIABLE.fullmatch(word) else shlex.quote(word) for word in words)


def length_and_notes(deployment: LaunchedGroup, framework: str) -> tuple[int, list[str]]:
    """Return the maximum sequence length and the notes common to every framework's command. [tokens]

    Raises
    ------
    RefusedError
        The plan states no lengths.
    """
    length, note = longest_sequence(deployment)
    notes = [note, *_expert_notes(deployment.layout, framework), *technique_notes(deployment, framework)]
    if (unsaid := unsaid_weights(deployment)) is not None:
        notes.append(unsaid)
    option, own = tools().framework(framework).batch, deployment.own_batches
    if deployment.batch is None:
        notes.append(UNKNOWN_BATCHES.format(option=option))
    elif len(set(own.values())) > 1:
        batches = ", ".join(f"{json.dumps(name)} {batch}" for name, batch in own.items())
        notes.append(OWN_BATCHES.format(batches=batches, option=option))
    if deployment.moments:
        moments = ", ".join(f"{json.dumps(name)} {count}" for name, count in deployment.moments.items())
        notes.append(MOMENTS.format(moments=moments))
    if deployment.crowded_by:
        accelerators = counted(deployment.crowded_by, "accelerator")
        notes.append(CROWDED.format(accelerators=accelerators, pool=json.dumps(deployment.placement.pool)))
    return length, notes


def _expert_notes(layout: Parallelism, framework: str) -> list[str]:
    """Return a note for layouts whose experts the performance model balances by default."""
    if layout.ep == 1 or layout.ep * layout.ffn_tp <= USUAL_HOST_ACCELERATORS:
        return []
    return [BALANCED_EXPERTS.format(each=EXPERTS_PER_REDUNDANT, options=LOAD_BALANCERS[framework])]


def draft_of(deployment: LaunchedGroup) -> tuple[str, str | None, int] | None:
    """Return method, checkpoint and tokens of the draft; None without speculative decoding.

    Raises
    ------
    RefusedError
        The fleet does not state the draft method.
    """
    service = deployment.service
    if service.draft_tokens is None or deployment.placement.phase == "prefill":
        return None
    if service.draft_method is None:
        raise RefusedError(
            f"planned with {service.draft_tokens} drafted tokens a step, but techniques.speculative names no "
            f"method and draft_model: started without a draft, it would be slower than planned"
        )
    return service.draft_method, service.draft_model, service.draft_tokens
