"""Work in processes of its own, without importing torch for each one.

Importing torch and transformers takes longer than most cases. The parent imports
them once, never starts CUDA, and forks a child per case; a child starts CUDA and
installs its allocator itself. Where something has started CUDA in the parent all
the same, children are fresh processes instead (fork=False): slower, same results.

A target is a function target(channel, **args), named by module and function. Parent
and child talk in lines of JSON. A child that dies or stays silent too long becomes
an error with the end of its output; nothing here waits for ever.
"""
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """A child died, failed or took too long. The text says which."""


class Channel:
    """One end of the line between parent and child."""

    def __init__(self, read_fd, write_fd):
        self.read_fd, self.write_fd = read_fd, write_fd
        self.buffer = b""

    def send(self, message):
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(self.write_fd, data):]

    def take(self):
        """A message that has fully arrived, or None."""
        line, found, rest = self.buffer.partition(b"\n")
        if not found:
            return None
        self.buffer = rest
        return json.loads(line)

    def fill(self):
        """Reads what is there; False at the end of the line."""
        data = os.read(self.read_fd, 1 << 16)
        self.buffer += data
        return bool(data)

    def receive(self):
        """The next message, or None when the other end is gone."""
        while True:
            message = self.take()
            if message is not None:
                return message
            if not self.fill():
                return None

    def close(self):
        for fd in (self.read_fd, self.write_fd):
            try:
                os.close(fd)
            except OSError:
                pass


class Worker:
    """A child process running one target."""

    live = []  # so that a later fork does not inherit the lines of earlier children

    def __init__(self, module, function, args, cpus=None, fork=True):
        self.name = f"{module}.{function} {args}"
        self.log = tempfile.TemporaryFile()
        down_r, down_w = os.pipe()
        up_r, up_w = os.pipe()
        self.process = None
        if fork:
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = os.fork()
            if self.pid == 0:
                os.close(down_w)
                os.close(up_r)
                for other in Worker.live:
                    other.channel.close()
                os.dup2(self.log.fileno(), 1)
                os.dup2(self.log.fileno(), 2)
                run_target(module, function, args, Channel(down_r, up_w), cpus)
        else:
            command = [sys.executable, os.path.abspath(__file__), module, function, json.dumps(args),
                       str(down_r), str(up_w), json.dumps(cpus)]
            self.process = subprocess.Popen(command, pass_fds=(down_r, up_w), stdin=subprocess.DEVNULL,
                                            stdout=self.log, stderr=self.log)
            self.pid = self.process.pid
        os.close(down_r)
        os.close(up_w)
        self.channel = Channel(up_r, down_w)
        self.ended = False
        Worker.live.append(self)

    def send(self, message):
        if self.ended:  # its file descriptors may be somebody else's by now
            raise Failed(f"{self.name}: has ended before")
        try:
            self.channel.send(message)
        except OSError:
            raise Failed(f"{self.name}: has ended; {self.tail()}") from None

    def receive(self, timeout):
        answers = gather([self], timeout)
        return answers[0]

    def tail(self, size=1500):
        """The end of what the child printed."""
        fd = self.log.fileno()
        # pread: the child writes at the same file offset and must not be disturbed.
        text = os.pread(fd, size, max(0, os.fstat(fd).st_size - size)).decode(errors="replace").strip()
        return f"its output ends: {text}" if text else "it printed nothing"

    def stop(self, patience=3.0):
        """Ends the child: politely by closing its line, then by force."""
        if self.ended:
            return
        self.ended = True
        Worker.live.remove(self)
        self.channel.close()
        deadline = time.monotonic() + patience
        while not self.gone():
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                self.wait()
                break
            time.sleep(0.01)
        self.log.close()

    def gone(self):
        if self.process is not None:
            return self.process.poll() is not None
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:
            return True

    def wait(self):
        if self.process is not None:
            self.process.wait()
            return
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass


def gather(workers, timeout):
    """One message from each worker. A worker that fails gives a Failed in its place
    and is ended; when one worker alone is asked the Failed is raised."""
    deadline = time.monotonic() + timeout
    answers = [None] * len(workers)
    open_ = {}
    for i, worker in enumerate(workers):
        if worker.ended:
            answers[i] = Failed(f"{worker.name}: has ended before")
        else:
            answers[i] = worker.channel.take()
            if answers[i] is None:
                open_[worker.channel.read_fd] = i
    while open_:
        left = deadline - time.monotonic()
        ready = select.select(list(open_), [], [], left)[0] if left > 0 else []
        if not ready:
            for i in open_.values():
                answers[i] = Failed(f"{workers[i].name}: no answer within {timeout:.0f} s; {workers[i].tail()}")
                workers[i].stop(patience=0)
            break
        for fd in ready:
            i = open_[fd]
            if workers[i].channel.fill():
                answers[i] = workers[i].channel.take()
                if answers[i] is None:
                    continue
            else:
                answers[i] = Failed(f"{workers[i].name}: ended without an answer; {workers[i].tail()}")
                workers[i].stop()
            del open_[fd]
    for i, answer in enumerate(answers):
        if isinstance(answer, dict) and "failed" in answer:
            answers[i] = Failed(f"{workers[i].name}: {answer['failed']}; {workers[i].tail()}")
            workers[i].stop()
    if len(workers) == 1 and isinstance(answers[0], Failed):
        raise answers[0]
    return answers


def run_target(module, function, args, channel, cpus):
    """The child's whole life. Leaves by os._exit: the parent's clean-up is not the child's."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if cpus and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cpus)
        target = getattr(importlib.import_module(module), function)
        target(channel, **args)
        code = 0
    except BaseException as e:
        traceback.print_exc()
        try:
            channel.send({"failed": f"{type(e).__name__}: {e}"[:2000]})
        except OSError:
            pass
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def cpus(first, count):
    """CPUs [first, first+count) of those this process may use; None where there are too few."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    mine = sorted(os.sched_getaffinity(0))
    return mine[first:first + count] if len(mine) >= first + count else None


if __name__ == "__main__":
    _module, _function, _args, _read, _write, _cpus = sys.argv[1:]
    sys.path.insert(0, HERE)
    run_target(_module, _function, json.loads(_args), Channel(int(_read), int(_write)), json.loads(_cpus))
