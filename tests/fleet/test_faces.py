"""Lazy package faces: every name of `__all__` can be imported, and none shadows a module."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

FACES = ("fleetplan.perfmodel.optables", "fleetplan.perfmodel.predict", "fleetplan.planner.candidates")


@pytest.mark.parametrize("name", FACES)
def test_a_face_has_every_name_that_it_promises(name: str) -> None:
    face = importlib.import_module(name)
    for promised in face.__all__:
        # Asked of the face itself: an earlier test may have left the name there.
        assert face.__getattr__(promised) is getattr(face, promised)
    assert not set(face.__all__) & {module.name for module in pkgutil.iter_modules(face.__path__)}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = face.nothing
