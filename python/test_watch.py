"""Tests of ashlar.watch() without a GPU: torch is the fake in testdata/fake, and
the server is one that does what a test wants.
"""
import http.server
import json
import os
import socketserver
import threading
import unittest
import unittest.mock
import urllib.parse

from recorder_case import ASHLAR, Case, JobCase

MIB = 1 << 20


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Stores samples; `refuse` makes it answer otherwise."""

    daemon_threads = True

    def __init__(self, path):
        super().__init__(path, Handler)
        self.path = path
        self.hellos, self.samples, self.results, self.snapshots = [], [], [], []
        self.asks, self.refuse, self.lost, self.ended = [], None, 0, False
        self.early = {}  # the answer to a path before its body is read; 0: none at all
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()
        os.remove(self.path)

    def answer(self, path, body):
        if path == "/v1/snapshot":
            self.snapshots.append(body)
            return {}
        body = json.loads(body)
        if path == "/v1/hello":
            self.hellos.append(body)
            return {"stored": 0, "ask": []}
        if path == "/v1/result":
            self.results.append(body)
            return {}
        stored = max([s["seq"] for s in self.samples], default=0)
        self.samples += [s for s in body["samples"] if s["seq"] > stored]
        self.lost, self.ended = body["lost"], body["end"]
        return {"stored": max([s["seq"] for s in self.samples], default=0), "ask": self.asks}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        code = self.server.early.get(self.path.partition("?")[0])
        if code is not None:
            self.close_connection = True
            if code:
                self.send_error(code)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.server.refuse
        answer = {"error": "no"} if code else self.server.answer(urllib.parse.urlparse(self.path).path, body)
        text = json.dumps(answer).encode()
        self.send_response(code or 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass

    def address_string(self):
        return "unix"


class WatchCase(Case):
    def setUp(self):
        super().setUp()
        self.socket = os.path.join(self.folder, "w.sock")
        self.watcher = self.ashlar._watcher
        self.watcher.start = self.begin

    def begin(self):
        """In the place of start: the test is the thread."""
        self.watcher.reset()
        self.watcher.pid, self.watcher.session = os.getpid(), "test-session"

    def serve(self):
        server = Server(self.socket)
        self.addCleanup(server.close)
        return server

    def watch(self, **options):
        self.torch.allocate()
        self.ashlar.watch("unix:" + self.socket, **options)

    def seconds(self, n):
        for _ in range(n):
            self.clock += 1
            self.watcher.sample()
            self.watcher.send()


class TestWatch(WatchCase):
    def test_sample(self):
        server = self.serve()
        self.ashlar.step(7)
        self.watch(run="job", commit="abc", tags={"lr": 0.1})
        self.seconds(2)
        hello = server.hellos[0]
        self.assertEqual((hello["run"], hello["commit"], hello["tags"], hello["rank"], hello["allow"]), ("job", "abc", {"lr": "0.1"}, 0, ["snapshot"]))
        self.assertEqual(hello["devices"], [{"index": 0, "name": "Fake GPU", "uuid": "", "total_bytes": 150_000_000_000}])
        sample = server.samples[1]
        self.assertGreater(sample.pop("time_us"), 0)
        self.assertGreater(sample.pop("host_rss"), MIB)
        self.assertEqual(sample, {
            "seq": 2, "gpu": 0, "step": 7, "step_us": None, "allocated": 3 * MIB + 1024, "active": 3 * MIB + 1024, "reserved": 22 * MIB,
            "requested": 3 * MIB + 1000, "inactive_split": 19 * MIB - 1024, "pinned": None, "peak_allocated": 3 * MIB + 1024,
            "peak_reserved": 22 * MIB, "device_free": 140_000_000_000, "device_total": 150_000_000_000, "limit": 40 * MIB,
            "num_alloc_retries": 0, "num_ooms": 0, "num_device_alloc": 2, "num_device_free": 0,
        })

    def test_before_cuda(self):
        """Nothing is asked of a GPU that the job does not use."""
        self.ashlar.watch("unix:" + self.socket)
        self.seconds(3)
        self.assertEqual(self.torch.calls, [])
        self.assertEqual(self.stderr.getvalue(), "")

    def test_late_server(self):
        self.watch()
        self.seconds(20)
        server = self.serve()
        self.seconds(10)
        self.assertEqual([s["seq"] for s in server.samples], list(range(1, 31)))
        self.assertEqual(self.stderr.getvalue().count("nothing can be sent"), 1)

    def test_ring(self):
        self.watch()
        self.seconds(700)
        server = self.serve()
        self.seconds(10)
        self.assertEqual(server.lost, 105)  # it is tried every five seconds
        self.assertEqual([s["seq"] for s in server.samples], list(range(106, 711)))

    def test_failing_server(self):
        server = self.serve()
        self.watch()
        self.seconds(3)
        server.refuse = 503
        self.seconds(10)
        server.refuse = None
        self.seconds(10)
        self.assertEqual([s["seq"] for s in server.samples], list(range(1, 24)))

    def test_refusing_server(self):
        """What will never be taken is not sent for ever."""
        server = self.serve()
        self.watch()
        self.seconds(1)
        server.refuse = 400
        self.seconds(1)
        server.refuse = None
        self.seconds(1)
        self.assertEqual(([s["seq"] for s in server.samples], server.lost), ([1, 3], 1))

    def test_other_store(self):
        server = self.serve()
        self.watch()
        self.seconds(1)
        server.refuse = 404
        self.seconds(1)
        server.refuse = None
        self.seconds(5)
        self.assertEqual(len(server.hellos), 2)
        self.assertEqual([s["seq"] for s in server.samples], list(range(1, 8)))

    def test_snapshot(self):
        server = self.serve()
        self.record()
        self.watch()
        server.asks = [{"id": "a/0", "what": "snapshot"}]
        self.seconds(3)
        self.assertEqual(len(server.snapshots), 1)
        self.assertIn(b"ashlar", server.snapshots[0])
        server.asks = [{"id": "b/0", "what": "snapshot"}]
        self.seconds(2)
        self.assertEqual((len(server.snapshots), server.results), (1, []))
        self.watcher.ready = 0  # the pause is over
        self.seconds(1)
        self.assertEqual(len(server.snapshots), 2)
        self.assertEqual(self.files(), ["w.sock"])

    def test_large_snapshot(self):
        """A server that takes no such snapshot, and answers before it has read it."""
        server = self.serve()
        self.record()
        self.watch()
        server.early = {"/v1/snapshot": 413}
        for ask in ("a/0", "b/0"):
            server.asks = [{"id": ask, "what": "snapshot"}]
            with unittest.mock.patch.object(self.ashlar, "dump", self.large_dump):
                self.seconds(2)
            self.watcher.ready = 0
        self.assertEqual(self.stderr.getvalue().count("too large for the server"), 1, self.stderr.getvalue())
        self.assertNotIn("nothing can be sent", self.stderr.getvalue())
        self.assertEqual((server.snapshots, server.results, len(server.samples)), ([], [], 4))
        self.assertEqual(self.files(), ["w.sock"])

    def large_dump(self, path, note):
        with open(path, "wb") as f:
            f.truncate(64 * MIB)
        return path

    def test_dropped_snapshot(self):
        """A connection that breaks off does not lose what was asked for."""
        server = self.serve()
        self.record()
        self.watch()
        server.early = {"/v1/snapshot": 0}
        server.asks = [{"id": "a/0", "what": "snapshot"}]
        self.seconds(1)
        self.assertEqual(server.snapshots, [])
        server.early = {}
        self.watcher.ready = self.watcher.silent_until = 0  # the pause is over
        self.seconds(2)
        self.assertEqual(len(server.snapshots), 1)
        self.assertEqual(server.results, [])

    def test_empty_cache(self):
        server = self.serve()
        self.watch(allow=("snapshot", "empty_cache"))
        server.asks = [{"id": "a/1", "what": "empty_cache"}]
        self.seconds(2)
        self.assertNotIn(("empty_cache",), self.torch.calls)
        self.ashlar.step()
        self.ashlar.step()
        self.assertEqual(self.torch.calls.count(("empty_cache",)), 1)
        self.seconds(1)
        self.assertEqual(server.results, [{"id": "a/1", "result": "done", "before": 22 * MIB, "after": 22 * MIB, "v": 1, "session": "test-session"}])

    def test_not_allowed(self):
        server = self.serve()
        self.watch()
        server.asks = [{"id": "a/1", "what": "empty_cache"}, {"id": "a/2", "what": "reboot"}]
        self.seconds(2)
        self.ashlar.step()
        self.assertNotIn(("empty_cache",), self.torch.calls)
        self.assertEqual([r["result"] for r in server.results], ["left out: the job does not allow it"] * 2)

    def test_wrong_options(self):
        """They are said in one line at once, and not by the thread."""
        addresses = ["example.com:80", 5, "127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:", "127.0.0.1:\u00b2", "127.0.0.1:-1", "localhost", "unix:"]
        addresses += ["127.0.0.1:" + "9" * 10000, "127.0.0.1:00000000199999999"]
        intervals = [float("inf"), float("nan"), 0, -1, 1e300, 86400, "soon", None]
        cases = [({"to": to}, "write unix:PATH") for to in addresses] + [({"interval": n}, "") for n in intervals]
        for options, want in cases:
            with self.subTest(**options):
                self.stderr.seek(0)
                self.stderr.truncate()
                self.ashlar.watch(**options)
                said = self.stderr.getvalue()
                self.assertIn("nothing is watched", said)
                self.assertIn(want, said)
                self.assertEqual(said.count("\n"), 1)
                self.assertIsNone(self.watcher.options)

    def test_addresses(self):
        of = self.ashlar._parse_address
        for address, want in (
            ("unix:/run/w.sock", "/run/w.sock"), ("unix:w.sock", "w.sock"), ("/run/w:1.sock", "/run/w:1.sock"),
            ("127.0.0.1:65535", ("127.0.0.1", 65535)), ("localhost:1", ("localhost", 1)), ("[::1]:80", ("::1", 80)),
        ):
            self.assertEqual(of(address), want)

    def test_allow_one(self):
        self.watch(allow="snapshot")
        self.assertEqual(self.watcher.options["allow"], ["snapshot"])

    def test_names(self):
        of = self.ashlar._run_name
        for variables, want in (
            ({"TORCHELASTIC_RUN_ID": "x", "SLURM_JOB_ID": "7"}, "x"),
            ({"TORCHELASTIC_RUN_ID": "none", "SLURM_JOB_ID": "7"}, "7"),
            ({"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2"}, "7_2"),
            ({"RAY_JOB_ID": "r"}, "r"),
        ):
            with unittest.mock.patch.dict(os.environ, variables):
                self.assertEqual(of(), want)

    def test_commit(self):
        git = os.path.join(self.folder, ".git")
        os.makedirs(os.path.join(git, "refs", "heads"))

        def write(name, text):
            with open(os.path.join(git, name), "w") as f:
                f.write(text + "\n")

        with unittest.mock.patch("sys.argv", [os.path.join(self.folder, "deep", "train.py")]):
            write("HEAD", "1" * 40)
            self.assertEqual(self.ashlar._commit(), "1" * 40)
            write("HEAD", "ref: refs/heads/main")
            write("packed-refs", "# pack-refs\n" + "2" * 40 + " refs/heads/main")
            self.assertEqual(self.ashlar._commit(), "2" * 40)
            write("refs/heads/main", "3" * 40)
            self.assertEqual(self.ashlar._commit(), "3" * 40)


class TestWatchedJobs(JobCase):
    def setUp(self):
        super().setUp()
        self.server = Server(os.path.join(self.folder, "w.sock"))
        self.addCleanup(self.server.close)

    def test_runner(self):
        """A job that forks and ends: all that was taken is sent, the child sends nothing."""
        self.add("train.py", """
import os, time, torch, ashlar
torch.allocate()
ashlar._watcher.options["interval"] = 0.02
for n in range(5):
    ashlar.step()
    time.sleep(0.05)
while ashlar._watcher.seq < 3:
    time.sleep(0.05)
if os.fork() == 0:
    ashlar.step()
    os._exit(0)
os.wait()
""")
        done = self.run_job(ASHLAR, "--watch=unix:" + self.server.path, "train.py")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertTrue(self.server.ended)
        self.assertEqual(len(self.server.hellos), 1)
        self.assertEqual(self.server.hellos[0]["run"], "train.py")
        self.assertEqual(self.server.hellos[0]["rank"], 1)
        seqs = [s["seq"] for s in self.server.samples]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        self.assertGreaterEqual(len(seqs), 3)

    def test_hanging_server(self):
        """A socket that nobody reads holds the end of the job up by seconds, not for ever."""
        import socket

        hanging = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = os.path.join(self.folder, "h.sock")
        hanging.bind(path)
        hanging.listen(1)
        self.addCleanup(hanging.close)
        self.add("train.py", "import torch\ntorch.allocate()\nimport ashlar\nashlar._watcher.sample()\nprint('done')\n")
        done = self.run_job(ASHLAR, "--watch=unix:" + path, "train.py")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))


if __name__ == "__main__":
    unittest.main()
