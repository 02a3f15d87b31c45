"""Presentation of plans: console output, the HTML report and the output folder."""
