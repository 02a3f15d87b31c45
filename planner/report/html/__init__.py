"""The report of a plan as one HTML file: no script, no external resource, light and dark, printable."""
