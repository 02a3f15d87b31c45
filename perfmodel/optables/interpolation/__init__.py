"""Times between measured rows: surfaces, curves, neighbours, and the error of leaving a row out."""
