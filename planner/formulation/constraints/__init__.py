"""One constraint family per module, with its formula in the docstring."""
