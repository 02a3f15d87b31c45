"""Fetch the config.json of a published model from the Hugging Face Hub with `huggingface_hub`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fleetplan.fleet.errors import InputError, Issue, brief

CONFIG: Final = "config.json"
"""Name of a model's config file."""


def published_config(model: str, revision: str | None) -> Path:
    """Return the local path of a published model's config, fetched if necessary.

    The library handles the token (HF_TOKEN), the mirror (HF_ENDPOINT) and its cache.

    Parameters
    ----------
    model : str
        Model id, such as Qwen/Qwen3-32B.
    revision : str or None
        Commit, branch or tag; None for the newest.

    Raises
    ------
    InputError
        The library is not installed, or returns no file: no network, no such model, no access.
    """
    try:
        import huggingface_hub as hub  # noqa: PLC0415 - an extra that few installations have
    except ImportError as error:
        hint = "pip install 'fleetplan[hub]', or save the model's config.json and give its path"
        raise InputError([Issue(model, 0, 0, "", "the package huggingface_hub is missing", hint)]) from error
    try:
        if not isinstance(hub.try_to_load_from_cache(model, CONFIG, revision=revision), str):
            # Query once first: without a network, a download silently retries for 23 s.
            hub.get_hf_file_metadata(hub.hf_hub_url(model, CONFIG, revision=revision))
        return Path(hub.hf_hub_download(model, CONFIG, revision=revision))
    # Turn any exception of its HTTP client into one sentence.
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        hint = "save the model's config.json from another machine and give its path"
        raise InputError([Issue(model, 0, 0, "", brief(f"gives no config.json: {reason}"), hint)]) from error
