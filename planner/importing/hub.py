"""The config.json of a published model, from the Hugging Face Hub through `huggingface_hub`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fleetplan.fleet.errors import InputError, Issue, brief

CONFIG: Final = "config.json"
"""The file of a model that says what it is."""


def published_config(model: str, revision: str | None) -> Path:
    """Return where the config of a published model lies once it was fetched.

    The library knows a token (HF_TOKEN), a mirror (HF_ENDPOINT) and what it fetched before.

    Parameters
    ----------
    model : str
        Its id, such as Qwen/Qwen3-32B.
    revision : str or None
        A commit, branch or tag; None is the newest.

    Raises
    ------
    InputError
        The library is not installed, or gives no file: no network, no such model, no access to it.
    """
    try:
        import huggingface_hub as hub  # noqa: PLC0415 - an extra that few installations have
    except ImportError as error:
        hint = "pip install 'fleetplan[hub]', or save the model's config.json and name its path"
        raise InputError([Issue(model, 0, 0, "", "the package huggingface_hub is missing", hint)]) from error
    try:
        if not isinstance(hub.try_to_load_from_cache(model, CONFIG, revision=revision), str):
            # It asks once; a download without a network is tried for 23 s, and says nothing meanwhile.
            hub.get_hf_file_metadata(hub.hf_hub_url(model, CONFIG, revision=revision))
        return Path(hub.hf_hub_download(model, CONFIG, revision=revision))
    # Whatever its HTTP client raises: every failure is one sentence.
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        hint = "save the model's config.json from another machine and name its path"
        raise InputError([Issue(model, 0, 0, "", brief(f"gives no config.json: {reason}"), hint)]) from error
