"""python -m ashlar_mem train.py: the script with its GPU memory recorded."""
import importlib.util
import sys

from . import ashlar

ashlar.USAGE = ashlar.USAGE.replace("python ashlar.py", "python -m ashlar_mem")

if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        sys.stderr.write("ashlar_mem: there is no PyTorch for %s, so no GPU memory will be recorded; use the Python that the job uses\n" % sys.executable)
    sys.exit(ashlar._main(sys.argv[1:]))
