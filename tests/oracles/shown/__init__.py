"""Figures that a plan shows in several places agree: plan.json, tables, workbook, report and screen.

Nothing here imports what writes those files: each is read as a stranger reads it, with JSON, CSV, HTML and
openpyxl, and held to the rows of plan.json and to sums of them. A figure agrees if it differs by no more
than its rounding.
"""
