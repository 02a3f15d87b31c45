"""Options and rules of launch tools by version, from the table tools.yaml."""

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
    """Options of a framework."""

    version: str
    source: str
    online_weights: Mapping[str, str]
    """Option that quantises a BF16 checkpoint at load, by data type of the weights."""
    kv: Mapping[str, str]
    """The framework's name of a cache data type, by ours."""
    draft_methods: Mapping[str, str]
    """The framework's name of a draft method, by ours."""
    port: int
    """Default port of its server."""
    listening: tuple[str, ...] = ()
    """Options that make a server accept requests from other hosts."""
    own_address: str | None = None
    """Variable for the address at which servers of another phase reach this one."""
    own_port: str | None = None
    """Option or variable for the port of that address."""
    batch: str
    """Option that limits the sequences of a batch."""


class RuntimeRules(_Rules):
    """A framework inside Dynamo."""

    version: str
    module: str
    image: str


class DynamoRules(_Rules):
    """Rules of Dynamo's operator."""

    version: str
    source: str
    api: str
    name_letters: int
    role_letters: int
    multihost_component_letters: int
    components: int
    """Maximum number of components of a graph."""
    frameworks: Mapping[str, RuntimeRules]


class VendorRules(_Rules):
    """Rules for accelerators of a vendor in llm-d."""

    type: str
    image: str
    vllm: str
    """Version of vLLM in the image."""


class LlmDRules(_Rules):
    """Rules of the llm-d chart."""

    version: str
    source: str
    framework: str
    sidecar: str
    """Image of the sidecar that routes requests to decode servers."""
    mooncake: str
    """Its name of the Mooncake cache transfer."""
    service_port: int
    proxied_port: int
    vendors: Mapping[str, VendorRules]


class ObjectRules(_Rules):
    """Objects of a Kubernetes controller, and the release with their schema."""

    version: str
    source: str
    api: str


class KueueRules(ObjectRules):
    """Rules of Kueue."""

    flavors: int
    """Maximum number of flavors in a resource group of a ClusterQueue."""


class TpuRules(_Rules):
    """A kind of TPU in Google Kubernetes Engine."""

    accelerator: str
    """Value of its node label."""
    topologies: Mapping[int, str]
    """Topology of a slice by its number of chips."""
    workload_policy: bool = False
    """Whether its multi-host slices need a workload policy."""


class GkeTpuRules(_Rules):
    """TPUs of Google Kubernetes Engine, and their node labels."""

    source: str
    accelerator_label: str
    topology_label: str
    machine_chips: int
    """Chips per machine of a multi-host slice."""
    parts: Mapping[str, TpuRules]


class Tools(_Rules):
    """All launch tools."""

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
