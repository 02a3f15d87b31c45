"""What launching tools accept, by version: the table tools.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fleetplan.fleet.document.plain import read_yaml

TOOLS_FILE: Final = Path(__file__).with_name("tools.yaml")


class _Rules(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FrameworkRules(_Rules):
    """What a framework accepts."""

    version: str
    source: str
    online_weights: Mapping[str, str]
    """Option that quantises a BF16 checkpoint at load, by the weights' data type."""
    kv: Mapping[str, str]
    """Name of the data type of the cache, by ours."""
    draft_methods: Mapping[str, str]
    """Name of what proposes tokens, by ours."""
    port: int
    """Where its server listens unless told."""
    listening: tuple[str, ...] = ()
    """Options without which a server answers its own host alone."""
    own_address: str | None = None
    """Variable with the address at which servers of another phase reach this one."""
    own_port: str | None = None
    """What sets the port at which they do."""
    batch: str
    """Option that caps the sequences of a batch."""


class RuntimeRules(_Rules):
    """A framework inside Dynamo."""

    version: str
    module: str
    image: str


class DynamoRules(_Rules):
    """What the operator of Dynamo accepts."""

    version: str
    source: str
    api: str
    name_letters: int
    role_letters: int
    multihost_component_letters: int
    components: int
    """Most components of a graph."""
    frameworks: Mapping[str, RuntimeRules]


class VendorRules(_Rules):
    """Accelerators of a vendor in llm-d."""

    type: str
    image: str
    vllm: str
    """Version of vLLM in the image."""


class LlmDRules(_Rules):
    """What the chart of llm-d accepts."""

    version: str
    source: str
    framework: str
    sidecar: str
    """Image of what routes requests to decode servers."""
    mooncake: str
    """What it calls the handing over of caches by Mooncake."""
    service_port: int
    proxied_port: int
    vendors: Mapping[str, VendorRules]


class ObjectRules(_Rules):
    """Objects of a Kubernetes controller, and the release whose schema they keep."""

    version: str
    source: str
    api: str


class KueueRules(ObjectRules):
    """What Kueue accepts."""

    flavors: int
    """Most flavors of a group of a ClusterQueue."""


class TpuRules(_Rules):
    """A kind of TPU in Google Kubernetes Engine."""

    accelerator: str
    """Value of the label of its nodes."""
    topologies: Mapping[int, str]
    """How the chips of a slice are arranged, by their number."""
    workload_policy: bool = False
    """Whether its slices over several machines are made by a policy of their own."""


class GkeTpuRules(_Rules):
    """TPUs of Google Kubernetes Engine, and the labels that it gives their nodes."""

    source: str
    accelerator_label: str
    topology_label: str
    machine_chips: int
    """Chips of a machine of a slice over several."""
    parts: Mapping[str, TpuRules]


class Tools(_Rules):
    """All launching tools."""

    vllm: FrameworkRules
    sglang: FrameworkRules
    trtllm: FrameworkRules
    dynamo: DynamoRules
    llm_d: LlmDRules = Field(alias="llm-d")
    lws: ObjectRules
    kueue: KueueRules
    karpenter: ObjectRules
    config_connector: ObjectRules = Field(alias="config-connector")
    gke_tpu: GkeTpuRules = Field(alias="gke-tpu")
    images: Mapping[str, Mapping[str, str]]
    """Image of a framework's server, by framework and vendor."""
    resources: Mapping[str, str]
    """Resource of the device plug-in, by vendor."""

    def framework(self, name: str) -> FrameworkRules:
        """Return the rules of vllm, sglang or trtllm."""
        rules: FrameworkRules = {"vllm": self.vllm, "sglang": self.sglang, "trtllm": self.trtllm}[name]
        return rules


@cache
def tools() -> Tools:
    """Return the table, read once."""
    return Tools.model_validate(read_yaml(TOOLS_FILE.read_text(encoding="utf-8")))
