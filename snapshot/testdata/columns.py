"""Prints what pickle.load makes of a snapshot, for a test to compare with.

usage: columns.py FILE

One line of JSON (texts, stacks, segments, annotations, settings, the number
of events of each device), then eight columns of 64-bit integers for the events
of each device, one after the other: action, addr or device_free, size, stream,
time_us, compile_context, user_metadata, frames. Texts and stacks are numbers
in the tables; -1 stands for an absent field.
"""
import array
import gc
import gzip
import json
import pickle
import sys

gc.disable()  # nothing here is garbage

sys.setrecursionlimit(10000)


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as f:
        return pickle.load(f)


class Table:
    def __init__(self):
        self.items, self.ids, self.known = [], {}, {}

    def add(self, key, item):
        if key not in self.ids:
            self.ids[key] = len(self.items)
            self.items.append(item)
        return self.ids[key]


texts, stacks = Table(), Table()


def text(value):
    return -1 if value is None else texts.add(value, value)


def stack(frames):
    if frames is None:
        return -1
    same = tuple(map(id, frames))  # all objects stay alive, ids are unique
    known = stacks.known.get(same)
    if known is None:
        key = tuple((f["name"], f["filename"], f["line"]) for f in frames)
        for f in frames:
            assert list(f) == ["name", "filename", "line"], f
        known = stacks.known[same] = stacks.add(key, [list(k) for k in key])
    return known


def signed(n):
    return n if n < 1 << 63 else n - (1 << 64)


data = load(sys.argv[1])
columns = []
EVENT = {"action", "addr", "device_free", "size", "stream", "time_us", "compile_context", "user_metadata", "frames"}
for events in data["device_traces"]:
    for e in events:
        assert EVENT >= e.keys(), e
        assert ("device_free" in e) == (e["action"] == "oom")
    columns += [
        [text(e["action"]) for e in events],
        [signed(e.get("addr", e.get("device_free"))) for e in events],
        [signed(e["size"]) for e in events],
        [signed(e["stream"]) for e in events],
        [e["time_us"] for e in events],
        [text(e.get("compile_context")) for e in events],
        [text(e.get("user_metadata")) for e in events],
        [stack(e.get("frames")) for e in events],
    ]
segments = []
for s in data["segments"]:
    blocks = [dict(b, frames=stack(b.get("frames"))) for b in s["blocks"]]
    segments.append(dict(s, frames=stack(s.get("frames")), blocks=blocks))
head = {
    "texts": texts.items,
    "stacks": stacks.items,
    "segments": segments,
    "annotations": data["external_annotations"],
    "settings": data["allocator_settings"],
    "counts": [len(t) for t in data["device_traces"]],
    "keys": list(data),
}
out = sys.stdout.buffer
out.write(json.dumps(head).encode() + b"\n")
for c in columns:
    out.write(array.array("q", c).tobytes())
