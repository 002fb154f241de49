"""Compares two snapshots field by field, types and order of keys included.

usage: compare.py ORIGINAL OTHER

Either may be a pickle or JSON, whose lists may stand for tuples. A segment
without frames may have its keys "frames" and "blocks" in either order: PyTorch
writes both.
"""
import gc
import gzip
import json
import pickle
import sys

gc.disable()  # nothing here is garbage


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as f:
        return json.load(f) if path.endswith(".json") else pickle.load(f)


exact = not sys.argv[2].endswith(".json")
seen = set()
SIMPLE = {int, str}  # most values, and equal as a rule


def compare(a, b, path):
    if isinstance(a, (list, tuple)):
        if exact:
            # Stacks are many and have the same few frames in them.
            pair = type(a), type(b), tuple(map(id, a)), tuple(map(id, b))
            if pair in seen:
                return
            seen.add(pair)
        kinds = (type(a),) if exact else (list, tuple)
        if not isinstance(b, kinds) or len(a) != len(b):
            raise SystemExit(f"{path}: {str(a)[:200]} became {str(b)[:200]}")
        for i, (x, y) in enumerate(zip(a, b)):
            compare(x, y, path + (i,))
    elif isinstance(a, dict):
        keys, others = list(a), list(b) if isinstance(b, dict) else b
        if a.get("frames") == [] and "blocks" in a:
            keys, others = sorted(keys), sorted(others)
        if keys != others:
            raise SystemExit(f"{path}: keys {keys} became {others}")
        for k, x in a.items():
            y = b[k]
            if type(x) not in SIMPLE or type(x) is not type(y) or x != y:
                compare(x, y, path + (k,))
    elif type(a) is not type(b) or a != b and not (a != a and b != b):
        raise SystemExit(f"{path}: {a!r} became {b!r}")


compare(load(sys.argv[1]), load(sys.argv[2]), ())
