"""Parallelism and replicas as a row of a table of cases states them."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.perfmodel.parallelism import Parallelism


@dataclass(frozen=True, slots=True)
class Degrees:
    """Parallelism in a row; `moe_tp` is 0 if omitted."""

    pp: int
    tp: int
    dp: int
    ep: int
    moe_tp: int
    cp: int = 1

    def parallelism(self, has_experts: bool) -> Parallelism:
        """Return the layout of the degrees.

        A left-out `moe_tp` follows from the accelerators of a stage. Decoders without experts have no
        use for it, so benchmark tables write 1 there: it is ignored.

        Raises
        ------
        ValueError
            Attention and experts do not take the same accelerators.
        """
        stage = self.tp * self.dp * self.cp
        stated = self.moe_tp if has_experts else 0
        ffn_tp = stated or max(1, stage // self.ep)
        if ffn_tp * self.ep != stage:
            attention = "tp*dp" if self.cp == 1 else "tp*dp*cp"
            raise ValueError(
                f"{attention} = {stage} and moe_tp*ep = {ffn_tp}*{self.ep} must be the same accelerators"
            )
        return Parallelism(pp=self.pp, tp=self.tp, dp=self.dp, ffn_tp=ffn_tp, ep=self.ep, cp=self.cp)


@dataclass(frozen=True, slots=True)
class PoolCase:
    """Figures of a disaggregated deployment beside the parallelism of decode.

    Attributes
    ----------
    prefill : Degrees
        Parallelism of a prefill replica.
    prefill_replicas, decode_replicas : int
        Number of each.
    streamed_tokens : int
        Tokens that the servers send at a time. [tokens]
    """

    prefill: Degrees
    prefill_replicas: int
    decode_replicas: int
    streamed_tokens: int
