"""The action of .github/actions/check, with stand-ins for ashlar and for GitHub."""

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".github", "actions", "check", "check.py")

ASHLAR = """#!{python}
import sys
print("table of", sys.argv[1:])
if "bad.pickle" in sys.argv:
    sys.exit(1)
if "none.pickle" in sys.argv:
    sys.stderr.write("ashlar: none.pickle: no such file\\n")
    sys.exit(2)
"""


class GitHub(http.server.BaseHTTPRequestHandler):
    """A repository with comments; calls are kept."""

    comments, calls = [], []

    def do_GET(self):
        self.serve()

    do_POST = do_PATCH = do_GET

    def serve(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.calls.append((self.command, self.path, self.headers["Authorization"], json.loads(data) if data else None))
        page = 1 if "page=1" in self.path.split("&") else 2
        answer = self.comments[100 * (page - 1):100 * page] if self.command == "GET" else {}
        self.send_response(200 if self.headers["Authorization"] == "Bearer good" else 403)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


class Action(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        command = os.path.join(self.dir.name, "ashlar")
        with open(command, "w") as f:
            f.write(ASHLAR.format(python=sys.executable))
        os.chmod(command, 0o755)
        GitHub.comments, GitHub.calls = [], []
        self.server = http.server.HTTPServer(("127.0.0.1", 0), GitHub)
        self.addCleanup(self.server.server_close)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(self.server.shutdown)

    def run_action(self, **inputs):
        self.summary, self.output = (os.path.join(self.dir.name, n) for n in ("summary", "output"))
        env = {
            "PATH": self.dir.name + os.pathsep + os.environ["PATH"], "GITHUB_STEP_SUMMARY": self.summary, "GITHUB_OUTPUT": self.output,
            "GITHUB_API_URL": f"http://127.0.0.1:{self.server.server_port}", "GITHUB_REPOSITORY": "me/job",
            **{"CHECK_" + k: v for k, v in inputs.items()},
        }
        return subprocess.run([sys.executable, "-B", CHECK], env=env, capture_output=True, text=True)

    def read(self, path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    def test_good(self):
        done = self.run_action(FILE="good.pickle", BASELINE="old.pickle", MAX_GROWTH="3", RULES="--max-leak 1MiB", TOKEN="", PULL_REQUEST="7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("['check', '--markdown', '--max-leak', '1MiB', '--baseline=old.pickle', '--max-growth=3', '--', 'good.pickle']", self.read(self.summary))
        self.assertEqual(self.read(self.output), "passed=true\n")
        self.assertEqual(GitHub.calls, [])

    def test_several_and_the_worst_counts(self):
        done = self.run_action(FILE="good.pickle\n  bad.pickle\n")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.read(self.summary).count("table of"), 2)
        self.assertEqual(self.read(self.output), "passed=false\n")

    def test_what_is_wrong_is_shown(self):
        done = self.run_action(FILE="none.pickle")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no such file", self.read(self.summary))
        self.assertIn("no such file", done.stderr)

    def test_no_file(self):
        done = self.run_action(FILE=" \n")
        self.assertEqual((done.returncode, done.stderr), (2, ""))
        self.assertIn("No file is given", done.stdout)

    def test_open_quote(self):
        done = self.run_action(FILE="bad.pickle", RULES="--max-reserved '70GiB")
        self.assertEqual((done.returncode, done.stderr), (2, ""))
        self.assertIn("`rules` cannot be read", done.stdout)

    def test_new_comment(self):
        GitHub.comments = [{"id": 1, "body": "hello"}, {"id": 2, "body": None}]
        self.assertEqual(self.run_action(FILE="bad.pickle", TOKEN="good", PULL_REQUEST="7").returncode, 1)
        method, path, _, data = GitHub.calls[-1]
        self.assertEqual((method, path), ("POST", "/repos/me/job/issues/7/comments"))
        self.assertIn("<!-- ashlar check -->\n### ashlar check\n\ntable of", data["body"])

    def test_the_same_comment_again(self):
        GitHub.comments = [{"id": i, "body": "hello"} for i in range(100)] + [{"id": 321, "body": "<!-- ashlar check -->\nold"}]
        self.run_action(FILE="good.pickle", TOKEN="good", PULL_REQUEST="7")
        self.assertEqual([c[:2] for c in GitHub.calls][-1], ("PATCH", "/repos/me/job/issues/comments/321"))

    def test_a_comment_that_is_refused_fails_nothing(self):
        done = self.run_action(FILE="good.pickle", TOKEN="of a fork", PULL_REQUEST="7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("::warning::ashlar check: the comment could not be written", done.stdout)


if __name__ == "__main__":
    unittest.main()
