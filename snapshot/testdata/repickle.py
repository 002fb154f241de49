"""Writes a snapshot again in every way a pickler may.

usage: repickle.py FILE FOLDER
"""
import gc
import gzip
import io
import json
import os
import pickle
import pickletools
import struct
import sys

gc.disable()  # nothing here is garbage

path, folder = sys.argv[1:]
with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
    data = pickle.load(f)


def write(name, content):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(content)


def dumps(pickler, protocol, **settings):
    f = io.BytesIO()
    p = pickler(f, protocol)
    for k, v in settings.items():
        setattr(p, k, v)
    p.dump(data)
    return f.getvalue()


for protocol in range(6):
    raw = pickle.dumps(data, protocol)
    write(f"protocol{protocol}.pickle", raw)
    write(f"optimized{protocol}.pickle", pickletools.optimize(raw))
    write(f"batches{protocol}.pickle", dumps(pickle._Pickler, protocol, _BATCHSIZE=3))
    write(f"single{protocol}.pickle", dumps(pickle._Pickler, protocol, _BATCHSIZE=1))
    write(f"nomemo{protocol}.pickle", dumps(pickle._Pickler, protocol, fast=True))


class Torch:
    """What torch's C++ pickler writes: protocol 2, one batch for each container,
    a memo entry behind a container, and only if it is used again."""

    def __init__(self, tags=False):
        self.out, self.memo, self.uses, self.tags = [], {}, {}, tags

    def count(self, v):
        if isinstance(v, (dict, list)):
            self.uses[id(v)] = self.uses.get(id(v), 0) + 1
            if self.uses[id(v)] == 1:
                for item in v.values() if isinstance(v, dict) else v:
                    self.count(item)

    def put(self, key):
        n = self.memo[key] = len(self.memo)
        self.out.append(b"q" + bytes([n]) if n < 256 else b"r" + struct.pack("<I", n))

    def get(self, key):
        n = self.memo[key]
        self.out.append(b"h" + bytes([n]) if n < 256 else b"j" + struct.pack("<I", n))

    def save(self, v):
        out = self.out
        key = ("text", v) if isinstance(v, str) else id(v)
        if isinstance(v, (str, dict, list)) and key in self.memo:
            return self.get(key)
        if v is None:
            out.append(b"N")
        elif isinstance(v, bool):
            out.append(b"\x88" if v else b"\x89")
        elif isinstance(v, int):
            if 0 <= v < 256:
                out.append(b"K" + bytes([v]))
            elif 0 <= v < 65536:
                out.append(b"M" + struct.pack("<H", v))
            elif -(1 << 31) <= v < 1 << 31:
                out.append(b"J" + struct.pack("<i", v))
            else:
                out.append(b"\x8a\x08" + struct.pack("<q", v if v < 1 << 63 else v - (1 << 64)))
        elif isinstance(v, float):
            out.append(b"G" + struct.pack(">d", v))
        elif isinstance(v, str):
            raw = v.encode()
            out.append(b"X" + struct.pack("<I", len(raw)) + raw)
            self.put(key)
        elif isinstance(v, tuple):
            self.save(v[0])
            self.save(v[1])
            out.append(b"\x86")
        elif isinstance(v, list):
            if self.tags:
                out.append(b"ctorch.jit._pickle\nrestore_type_tag\n")
            out.append(b"](")
            for item in v:
                self.save(item)
            out.append(b"e")
            if self.tags:
                self.save("List[Any]")
                out.append(b"\x86R")
            if self.uses[id(v)] > 1:
                self.put(key)
        else:
            out.append(b"}(")
            items = list(v.items())
            if "time_us" in v and "action" in v:  # its own order of keys
                items.sort(key=lambda i: (i[0] == "time_us", i[0] == "frames"))
            for k, item in items:
                self.save(k)
                self.save(item)
            out.append(b"u")
            if self.uses[id(v)] > 1:
                self.put(key)

    def dump(self, v):
        self.count(v)
        self.out.append(b"\x80\x02")
        self.save(v)
        self.out.append(b".")
        return b"".join(self.out)


write("torch.pickle", Torch().dump(data))
write("tagged.pickle", Torch(tags=True).dump(data))
write("segments.pickle", pickle.dumps(data["segments"]))
with open(os.path.join(folder, "dumped.json"), "w") as f:
    json.dump(data, f)
with open(os.path.join(folder, "indented.json"), "w") as f:
    json.dump(data, f, indent=2, ensure_ascii=False)
