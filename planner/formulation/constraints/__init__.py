"""One constraint family per module: formula in the docstring, number in `FAMILY`, rows in `add`."""
