"""A plan under simulated requests: who waits how long, and whether the limits hold."""
