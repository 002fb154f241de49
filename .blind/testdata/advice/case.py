"""What the cases share: the fix to apply, the limit, and a report at the end."""
import atexit
import json
import os
import subprocess
import sys

import torch

FIX = os.environ.get("FIX", "")  # one of the kinds of `ashlar explain --json`; empty: the mistake
MIB = float(os.environ.get("LIMIT_MIB") or 0)
report = {"torch": torch.__version__, "died": False, "step": None}


def limit():
    """Allow this process LIMIT_MIB."""
    if MIB:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, MIB * 2**20 / total))


NEIGHBOUR = """
import sys, torch
torch.zeros(1, device="cuda")
torch.cuda.synchronize()
free, total = torch.cuda.mem_get_info()
held = torch.empty(max(1, int(free - float(sys.argv[1]) * 2**20)), dtype=torch.uint8, device="cuda")
print("ready", flush=True)
sys.stdin.read()
"""


def neighbour():
    """Start another process that leaves LIMIT_MIB of the device to this one."""
    if not MIB or FIX == "others":
        return
    torch.zeros(1, device="cuda")
    child = subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(MIB)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(end, child)
    if child.stdout.readline().strip() != "ready":
        raise RuntimeError("the other process did not start")


def end(child):
    child.stdin.close()  # it waits for that
    child.wait(timeout=20)


def excepthook(kind, error, trace, previous=sys.excepthook):
    report["died"] = True
    tb = trace
    while tb is not None:
        step = tb.tb_frame.f_locals.get("step")
        if isinstance(step, int):
            report["step"] = step
        tb = tb.tb_next
    previous(kind, error, trace)


def finish():
    if torch.cuda.is_initialized():
        stats = torch.cuda.memory_stats()
        report["allocated"] = stats.get("allocated_bytes.all.peak", 0)
        report["reserved"] = stats.get("reserved_bytes.all.peak", 0)
        report["retries"] = stats.get("num_alloc_retries", 0)
    recorder, dump = sys.modules.get("ashlar"), os.environ.get("DUMP")
    if recorder is not None and dump and not report["died"]:
        recorder.dump(dump)
    if os.environ.get("REPORT"):
        with open(os.environ["REPORT"], "w") as f:
            json.dump(report, f)


torch.manual_seed(0)
sys.excepthook = excepthook
atexit.register(finish)
