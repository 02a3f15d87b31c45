"""One constraint family a module, its formula in the docstring."""
