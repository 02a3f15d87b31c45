"""Latency, throughput, memory and power of a serving configuration, from measured operators."""
