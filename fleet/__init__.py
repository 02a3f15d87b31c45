"""What exists and what is wanted: fleet files, the catalogue, prices and demand."""
