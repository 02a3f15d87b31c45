"""Model architectures: from a catalogue name or a Hugging Face `config.json` to a decoder's shapes.

In: a model's name or path. Out: a `ModelArchitecture` of layers. Entry points: `load_architecture`, and
`architecture_from_config` for a config that is already read. `hf` reads the keys of each model family.
"""

from fleetplan.perfmodel.architecture.compressed import CompressedAttention
from fleetplan.perfmodel.architecture.decoder import ModelArchitecture, NativeQuantisation, WeightCount
from fleetplan.perfmodel.architecture.encoder import VisionEncoder
from fleetplan.perfmodel.architecture.hf.reader import UnsupportedArchitecture
from fleetplan.perfmodel.architecture.layers import (
    WHOLE_CONTEXT,
    Attention,
    DenseFfn,
    Ffn,
    GroupedQueryAttention,
    LatentAttention,
    LayerGroup,
    LinearAttention,
    LinearVariant,
    MoeFfn,
    index_bytes_per_token,
    kept_tokens,
    kv_bytes_per_token_per_layer,
)
from fleetplan.perfmodel.architecture.load import architecture_from_config, load_architecture
from fleetplan.perfmodel.architecture.sparse_index import BlockIndex, SparseIndex

__all__ = [
    "WHOLE_CONTEXT",
    "Attention",
    "BlockIndex",
    "CompressedAttention",
    "DenseFfn",
    "Ffn",
    "GroupedQueryAttention",
    "LatentAttention",
    "LayerGroup",
    "LinearAttention",
    "LinearVariant",
    "ModelArchitecture",
    "MoeFfn",
    "NativeQuantisation",
    "SparseIndex",
    "UnsupportedArchitecture",
    "VisionEncoder",
    "WeightCount",
    "architecture_from_config",
    "index_bytes_per_token",
    "kept_tokens",
    "kv_bytes_per_token_per_layer",
    "load_architecture",
]
