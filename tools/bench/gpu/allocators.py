"""Which allocator a process uses. install() must come before CUDA starts.

native          PyTorch's own, default settings
expandable      PyTorch's own, expandable_segments:True
ashlar          libashlar.so through python/ashlar_torch.py, default settings
ashlar_nofront  the same with its front cache switched off
noop            hands out addresses without memory: what torch's pluggable layer costs by itself
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
NAMES = ("native", "expandable", "ashlar", "ashlar_nofront", "noop")
SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "ASHLAR_CONF", "ASHLAR", "ASHLAR_DRIVER",
            "PYTORCH_NO_CUDA_MEMORY_CACHING")


def library_path():
    """Where libashlar.so is: ASHLAR_LIBRARY, or what `make gpu` builds."""
    return os.path.abspath(os.environ.get("ASHLAR_LIBRARY") or os.path.join(ROOT, "bin", "gpu", "libashlar.so"))


def module_dir():
    """The folder of ashlar_torch.py."""
    return os.environ.get("ASHLAR_PYTHON") or os.path.join(ROOT, "python")


def clean_environment(env=os.environ):
    """Takes away settings of the caller's shell that would change an allocator, and names the library."""
    for name in SETTINGS:
        env.pop(name, None)
    env["ASHLAR_LIBRARY"] = library_path()
    return env


def install(name):
    """Makes torch allocate through the named allocator from now on."""
    import torch

    if name not in NAMES:
        raise ValueError(f"no allocator is called {name!r}; there are {', '.join(NAMES)}")
    if torch.cuda.is_initialized():
        raise RuntimeError("CUDA has started already: an allocator can only be chosen before")
    if name == "expandable":
        change_settings("expandable_segments:True")
    elif name.startswith("ashlar"):
        if name == "ashlar_nofront":
            os.environ["ASHLAR_CONF"] = "front_cache:False"
        os.environ.setdefault("ASHLAR_LIBRARY", library_path())
        if module_dir() not in sys.path:
            sys.path.insert(0, module_dir())
        import ashlar_torch  # noqa: F401  (the import installs it)
    elif name == "noop":
        path = os.environ["NOOP_LIBRARY"]
        plug = torch.cuda.memory.CUDAPluggableAllocator(path, "noop_malloc", "noop_free")
        torch.cuda.memory.change_current_allocator(plug)
        # Kept as long as the process: torch holds plain addresses into it.
        install.kept = plug
    check(name)


def check(name):
    """An allocator that was not really installed would make every comparison true."""
    import torch

    backend = torch.cuda.get_allocator_backend()
    want = "native" if name in ("native", "expandable") else "pluggable"
    if backend != want:
        raise RuntimeError(f"asked for {name}, but torch's backend is {backend!r} and not {want!r}")


def change_settings(conf):
    import torch

    # PYTORCH_CUDA_ALLOC_CONF is read while torch is imported; this works afterwards too.
    setter = getattr(torch._C, "_accelerator_setAllocatorSettings", None) or torch.cuda.memory._set_allocator_settings
    setter(conf)
