"""Planning, proofs, explanations and reports; the command line."""
