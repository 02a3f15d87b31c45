"""Checkpoints of the same shapes keep the names that users gave."""

import pytest

from fleetplan.fleet.catalog.models import UnknownModelError, checkpoint, model_catalog, resolve


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("llama3-70b", "meta-llama/Llama-3.1-70B"),
        ("meta-llama/llama-3.1-70b", "meta-llama/Llama-3.1-70B"),
        ("deepseek-ai/deepseek-v3-0324", "deepseek-ai/DeepSeek-V3-0324"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
    ],
)
def test_names(given: str, expected: str) -> None:
    assert checkpoint(given) == expected


def test_every_id_means_itself_and_has_the_shapes_of_its_model() -> None:
    for facts in model_catalog().values():
        for name in (facts.name, *(each for each in facts.aliases if "/" in each)):
            assert checkpoint(name) == name
            assert resolve(checkpoint(name)) == facts.name


def test_unknown_names() -> None:
    with pytest.raises(UnknownModelError):
        checkpoint("llama9-70b")
