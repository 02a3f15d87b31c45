"""Hugging Face `config.json`: the keys of each model family, read into layers."""
