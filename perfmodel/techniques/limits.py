"""Which techniques a model cannot use, and why."""

from __future__ import annotations

from fleetplan.fleet.inventory import ExpertRouting, Techniques
from fleetplan.perfmodel.architecture import LinearAttention, ModelArchitecture, MoeFfn
from fleetplan.perfmodel.techniques.images import image_problem


def technique_problem(architecture: ModelArchitecture, techniques: Techniques) -> str:
    """Say why a model cannot use the techniques, naming the switch; an empty string where it can."""
    attentions = [group.attention for group in architecture.groups if group.attention is not None]
    recurrent = any(isinstance(attention, LinearAttention) for attention in attentions)
    if techniques.speculative is not None and recurrent:
        return (
            f"speculative: {architecture.name} has recurrent layers, whose state cannot drop rejected "
            f"tokens; that is not evaluated"
        )
    return image_problem(architecture, techniques) or _routing_problem(architecture, techniques)


def _routing_problem(architecture: ModelArchitecture, techniques: Techniques) -> str:
    busiest = techniques.experts.busiest_expert_ratio
    if techniques.experts == ExpertRouting() and techniques.expert_overlap == "none":
        return ""
    if not any(isinstance(group.ffn, MoeFfn) for group in architecture.groups):
        if techniques.experts == ExpertRouting():
            return f"expert_overlap: {architecture.name} has no experts, so it has no effect"
        return f"experts: {architecture.name} has none, so their routing has no effect"
    for group in architecture.groups:
        if busiest is not None and isinstance(group.ffn, MoeFfn):
            least, most = 1 / group.ffn.experts, 1 / group.ffn.top_k
            # With one expert a token the busiest may receive all but a trace of the others.
            if not least <= busiest <= most or busiest >= 1:
                return (
                    f"busiest_expert_ratio: {busiest:g} is outside {least:.4g} to {most:.4g}, with "
                    f"{group.ffn.experts} experts of which a token uses {group.ffn.top_k}"
                )
    return ""
