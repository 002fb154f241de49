"""Runs scripts in forks of a process that has PyTorch loaded: imports are most of a short run.

Reads a job a line from standard input: {"id", "script", "args", "env", "folder", "stderr", "timeout"}.
Writes {"id", "code"} when it is over; the code of a job that took too long is -9.
CUDA must not be touched before the fork, so a fork tries it first. The first line says "ready", or why not.
The allocator's settings are those of this process: record.py starts one for each.
"""
import json
import os
import select
import signal
import sys
import time
import types


def preload():
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # is_available() must not touch CUDA
    import torch
    import torch._dynamo  # the first step of an optimizer imports it
    import torch.nn.functional
    import torch.utils.checkpoint
    return torch


def check(torch):
    """Whether a fork can use the GPU."""
    pid = os.fork()
    if pid == 0:
        try:
            torch.zeros(1, device="cuda").item()
        except BaseException as e:
            sys.stderr.write("%r\n" % e)
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def say(text):
    os.write(1, (text + "\n").encode())


def serve():
    """Fork for every job. Returns the job in its fork, and None here when the input has ended."""
    running, rest, more = {}, b"", True
    while more or running:
        if more and select.select([0], [], [], 0.02)[0]:
            data = os.read(0, 1 << 16)
            more = bool(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                job = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    return job
                running[pid] = job["id"], time.monotonic() + job["timeout"]
        elif not more:
            time.sleep(0.02)
        for pid, (name, deadline) in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del running[pid]
                say(json.dumps({"id": name, "code": os.waitstatus_to_exitcode(status)}))
            elif time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
    return None


def become(job):
    """Make this fork look like a process that was started with the script."""
    os.environ.update(job["env"])
    os.chdir(job["folder"])
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(job["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for old, new in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(old, new)
    sys.argv = [job["script"]] + job["args"]
    sys.path[0] = os.path.dirname(job["script"])
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = job["script"]
    with open(job["script"], "rb") as f:
        return compile(f.read(), job["script"], "exec"), main.__dict__


torch = preload()
if check(torch):
    say("ready")
    job = serve()
    if job is not None:
        exec(*become(job))
else:
    say("a fork cannot use CUDA")
