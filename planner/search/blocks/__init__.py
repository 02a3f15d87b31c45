"""Large fleets: the model's matrix falls into blocks that few rows link, and is solved block by block."""
