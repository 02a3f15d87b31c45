"""Ready fleets, and the expansion of scenarios and overrides into one fleet."""
