"""Replay a plan under simulated requests: waiting times, and whether the latency limits hold."""
