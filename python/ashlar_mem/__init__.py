"""Ashlar in Python: the GPU memory of PyTorch jobs, recorded and explained.

    import ashlar_mem
    ashlar_mem.record()                      # a file is left behind when the job dies

    python -m ashlar_mem train.py            # the same, the script unchanged
    python -m ashlar_mem.ashlar_torch train.py   # with Ashlar as PyTorch's allocator
    python -m ashlar_mem.ashlar_dry train.py     # on fake tensors, without a GPU

The modules ashlar, ashlar_torch and ashlar_dry are the single files that can
also be copied beside a job. What they export can be used from here: importing
ashlar_mem imports neither torch nor any of them but the recorder. The first use
of a name of ashlar_torch makes Ashlar PyTorch's allocator, as its import does.
"""
import importlib
import os

_HERE = os.path.dirname(os.path.abspath(__file__))
if not os.path.exists(os.path.join(_HERE, "ashlar.py")):  # in Ashlar's sources they lie beside the package
    __path__.append(os.path.dirname(_HERE))

from .ashlar import async_save, dump, guard, monitor, oom_retry, record, retry, step, stop  # noqa: E402

# What other modules export, and those modules where they are more than a name here.
_LATER = {
    "ashlar_torch": (
        "checked", "cold", "dropped", "enabled", "info", "park", "region", "restore", "settings", "snapshot", "stats", "tenant",
    ),
    "callbacks": ("TrainerCallback", "LightningCallback", "watch"),
    "notebook": ("show", "load_ipython_extension"),
    "ashlar_dry": (),
}

__all__ = ["async_save", "dump", "guard", "monitor", "oom_retry", "record", "retry", "step", "stop"]


def __getattr__(name):
    # dir() does not list these: whatever walks over a module's names would import them all.
    for module, names in _LATER.items():
        if name == module:
            return importlib.import_module("." + module, __name__)
        if name in names:
            return getattr(importlib.import_module("." + module, __name__), name)
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("ashlar-mem")
        except PackageNotFoundError:
            raise AttributeError("ashlar_mem is not installed, so it has no version") from None
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
