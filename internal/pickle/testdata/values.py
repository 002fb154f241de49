"""Prints pickles of many values, with the text that the tests have for them."""
import base64
import io
import json
import pickle
import pickletools
import random

random.seed(7)


def text(v):
    if v is None or isinstance(v, bool) or isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return {"1e+300": "1e+300", "inf": "+Inf"}.get(repr(v), str(int(v)) if v == int(v) and abs(v) < 1e16 else repr(v)) if v == v and v != float("inf") else ("+Inf" if v == v else "NaN")
    if isinstance(v, str):
        return '"' + v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\x00", "\\x00").replace("\x1a", "\\x1a") + '"'
    if isinstance(v, list):
        return "[" + ", ".join(map(text, v)) + "]"
    if isinstance(v, tuple):
        return "(" + ", ".join(map(text, v)) + ")"
    return "{" + ", ".join(text(k) + ": " + text(x) for k, x in v.items()) + "}"


shared = ["s", {"t": 1}]
numbers = [0, 1, -1, 255, 256, 65535, 65536, -129]
for bits in (31, 32, 59, 60, 61, 63, 64, 65, 300):
    numbers += [2**bits, 2**bits - 1, -(2**bits), -(2**bits) - 1]
values = {
    "constants": [None, True, False],
    "numbers": numbers,
    "floats": [0.5, -2.25, 1e300, float("inf"), 3.0],
    "texts": ["", "a", "é", "😀", "a\\u0041", "line\nfeed\r\x00\x1a", "q\"q'", "x" * 300, "seventeen letters", "exactly 16 chars", "eight 88"],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ((),))],
    "lists": [[], [1], [[]], [[1, []], 2]],
    "dictionaries": [{}, {"a": 1}, {"a": 1, "b": {"c": {}}}, {1: 2, (3, 4): [5]}],
    "shared": [shared, shared, {"a": shared, "b": shared[1]}, [shared[1]] * 5],
    "long list": list(range(2500)),
    "long dictionary": {str(i): i for i in range(2500)},
    "1001 items": [[i] for i in range(1001)],
    "long tuple": tuple(range(1500)),
}


def tree(depth):
    kind = random.randrange(9 if depth else 6)
    if kind == 6:
        return [tree(depth - 1) for _ in range(random.randrange(4))]
    if kind == 7:
        return tuple(tree(depth - 1) for _ in range(random.randrange(5)))
    if kind == 8:
        return {random.choice("abcdefgh") * random.randrange(1, 20): tree(depth - 1) for _ in range(random.randrange(4))}
    return [None, True, random.randrange(-(2**70), 2**70), random.randrange(300), random.choice("xyz") * 9, 0.25][kind]


for i in range(20):
    values[f"random {i}"] = tree(5)


def emit(name, data, want):
    print(json.dumps({"name": name, "data": base64.b64encode(data).decode(), "want": want}))


for name, v in values.items():
    want = text(v)
    for protocol in range(6):
        raw = pickle.dumps(v, protocol)
        emit(f"{name}, protocol {protocol}", raw, want)
        emit(f"{name}, protocol {protocol}, in Python", pickle._dumps(v, protocol), want)
        if "long" not in name:
            emit(f"{name}, protocol {protocol}, optimized", pickletools.optimize(raw), want)
            f = io.BytesIO()
            p = pickle._Pickler(f, protocol)
            p._BATCHSIZE = 2
            p.dump(v)
            emit(f"{name}, protocol {protocol}, in small batches", f.getvalue(), want)
