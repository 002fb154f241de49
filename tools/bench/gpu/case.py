"""One case of robust.py in a process of its own.

usage: python3 case.py GROUP NAME ALLOCATOR [JSON]

GROUP is a module case_GROUP with functions that take the options given as JSON and
return facts; a failed check raises. The last line printed is RESULT and the facts.
"""
import importlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GIB, MIB = 1 << 30, 1 << 20


class Wrong(Exception):
    """What was checked does not hold."""


def check(condition, text):
    if not condition:
        raise Wrong(text)


def rss():
    """Resident bytes of this process."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def set_limit(bytes_):
    """Lets this process use so much GPU memory and no more."""
    import torch

    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, bytes_ / total))


def main():
    group, name, allocator = sys.argv[1:4]
    options = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    import allocators

    if not options.pop("by_hand", False):  # a case about installing does it itself
        allocators.install(allocator)
    facts = getattr(importlib.import_module("case_" + group), name)(**options)
    print("RESULT " + json.dumps(facts), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    sys.modules["case"] = sys.modules["__main__"]  # one class Wrong, whoever imports it
    main()
