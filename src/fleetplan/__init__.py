"""fleetplan: the cheapest accelerator fleet that serves every LLM within its latency targets."""

__version__ = "0.1.0"
