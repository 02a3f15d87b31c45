"""Latency, throughput, memory and power of a serving configuration, from measured operators.

From the bottom up: `operators` and their work; `architecture` (models), `optables` (operator times) and
`parallelism` (layouts); `steps` (one pass through a decoder); `techniques` (what changes a step) and
`microbench` (measures operators); `evaluator` (a phase of a replica); `landscape` (all configurations) and
`serving` (a replica in steady state); `predict`, `queueing` and `replay`; `calibrate`.

Entry points: `evaluator.build_evaluator`, `landscape.sweep`, `predict.predict`, `queueing.capacity_lines`,
`replay.run_service`, `calibrate.calibrate`. A room imports from the rooms below it, never from those above.
"""
