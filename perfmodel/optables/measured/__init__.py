"""The packaged tables of measured operator times, one module a family of operators."""
