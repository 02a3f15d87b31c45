"""Latency under load in closed form: pools of servers, continuous batching, and benchmarks' closed loops."""
