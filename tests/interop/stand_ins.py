"""Stand-ins for compiled kernels and vision libraries that SGLang imports.

Import it before SGLang; it runs in the interop environment.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types

import transformers.utils.import_utils as installed
from transformers import AutoProcessor  # noqa: F401  (found before torchvision is stood in for)

installed.is_torchvision_available()
installed.is_torchvision_v2_available()


class _Stub(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Stub(f"{self.__name__}.{name}")

    def __call__(self, *arguments, **options):
        return self

    def __mro_entries__(self, bases):
        return (object,)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in {"torchvision", "sgl_kernel", "decord", "torchcodec", "torchaudio"}:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Stub(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, _Finder())
