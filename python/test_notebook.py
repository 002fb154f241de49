"""Tests of ashlar_mem/notebook.py. The magic runs in IPython where there is one."""
import html
import os
import pickle
import sys
import types
import unittest
from unittest import mock

from test_callbacks import CallbackCase, Command

PAGE = "<!doctype html><html><head><title>a &amp; b</title></head><body>\"%s\"</body></html>"

# Writes a page with the file's name and the flags in it.
REPORT = """
file, flags = sys.argv[2], sys.argv[5:]
if sys.argv[1] == "explain":
    print("Cause: capacity")
    sys.exit(0)
open(file, "rb").close()
open(sys.argv[4], "w").write(%r %% (file + " ".join(flags)))
""" % PAGE

try:
    from IPython.core.interactiveshell import InteractiveShell
except ImportError:
    InteractiveShell = None


class NotebookCase(CallbackCase):
    def setUp(self):
        super().setUp()
        import ashlar_mem.notebook

        self.notebook = ashlar_mem.notebook
        os.environ["ASHLAR_BIN"] = Command(self.tools, REPORT).path
        self.file = os.path.join(self.folder, "a.pickle")
        with open(self.file, "wb") as f:
            pickle.dump({}, f)


class TestShow(NotebookCase):
    def setUp(self):
        super().setUp()
        self.shown = []
        self.install("IPython")
        self.install("IPython.display", HTML=lambda text: text, display=self.shown.append)

    def page(self):
        """What the frame's document is, by the rules of HTML for attributes."""
        self.assertEqual(len(self.shown), 1, self.stderr.getvalue())
        before, _, rest = self.shown[0].partition('srcdoc="')
        inside, quote, after = rest.partition('"')
        self.assertEqual(after, "></iframe>")
        return html.unescape(inside)

    def test_path(self):
        self.notebook.show(self.file, height=300)
        self.assertEqual(self.page(), PAGE.replace("<head>", '<head><base href="about:srcdoc">') % (self.file + "--interactive"))
        self.assertIn("height:300px", self.shown[0])

    def test_snapshot(self):
        self.notebook.show({"segments": []})
        self.assertIn("snapshot.pickle--interactive", self.page())

    def test_without_engine(self):
        os.environ["ASHLAR_BIN"] = Command(self.tools, "if '--interactive' in sys.argv: sys.exit(2)\n" + REPORT).path
        self.notebook.show(self.file)
        self.assertIn("a.pickle\"</body>", self.page())

    def test_failures(self):
        os.environ["ASHLAR_BIN"] = Command(self.tools, "sys.stderr.write('ashlar: not a snapshot\\n'); sys.exit(2)").path
        self.notebook.show(self.file)
        os.environ["ASHLAR_BIN"] = os.path.join(self.folder, "gone")
        self.notebook.show(self.file)
        self.assertEqual(self.shown, [])
        self.assertEqual(len(self.warnings()), 2)
        self.assertEqual(self.warnings()[0], "ashlar: no report is shown: RuntimeError: ashlar: not a snapshot")


@unittest.skipIf(InteractiveShell is None, "there is no IPython")
class TestMagic(NotebookCase):
    def setUp(self):
        super().setUp()
        os.environ["IPYTHONDIR"] = self.tools
        self.shell = InteractiveShell()
        self.addCleanup(self.shell.history_manager.end_session)
        self.shell.history_manager.enabled = False
        self.shell.user_ns["torch"] = self.torch
        self.notebook.load_ipython_extension(self.shell)
        self.shown = []
        self.enter(mock.patch.object(self.notebook, "show", lambda path, height: self.shown.append((os.path.basename(path), height))))
        self.tracebacks = []
        self.shell._showtraceback = lambda kind, error, lines: self.tracebacks.append(kind)
        self.record()

    def run_cell(self, text, line=""):
        return self.shell.run_cell("%%ashlar " + line + "\n" + text)

    def test_works(self):
        ran = self.run_cell("torch.allocate()\nx = 7", "--height 400")
        self.assertTrue(ran.success)
        self.assertEqual(self.shell.user_ns["x"], 7)
        self.assertEqual(self.shown, [("m-0-call-1.pickle", 400)])

    def test_out_of_memory(self):
        ran = self.run_cell("torch.allocate()\ntorch.fail()")
        self.assertIsInstance(ran.error_in_exec, self.torch.cuda.OutOfMemoryError)
        self.assertEqual(self.tracebacks, [self.torch.cuda.OutOfMemoryError])
        self.assertEqual(self.shown, [("m-0.pickle", self.notebook.HEIGHT)])
        self.assertEqual(self.stderr.getvalue().count("Cause: capacity"), 1)

    def test_other_errors(self):
        for text, kind in (("1/0", ZeroDivisionError), ("1 +", SyntaxError)):
            with self.subTest(text):
                del self.tracebacks[:]
                ran = self.run_cell(text)
                self.assertFalse(ran.success)
                self.assertEqual(self.tracebacks, [kind])
        self.assertEqual(self.shown, [])

    def test_nothing_of_the_shell_is_left_changed(self):
        self.run_cell("1/0")
        self.assertEqual({"showtraceback", "showsyntaxerror"} & set(vars(self.shell)), set())

    def test_wrong_flag(self):
        self.run_cell("x = 1", "--depth 3")
        self.assertNotIn("x", self.shell.user_ns)
        self.assertIn("unrecognized arguments", self.stderr.getvalue())

    def test_callback_in_a_notebook(self):
        """No exception leaves a cell: IPython tells of it."""
        with mock.patch.dict(sys.modules, IPython=types.SimpleNamespace(get_ipython=lambda: self.shell)):
            self.callbacks.watch(**self.options)
        self.shell.run_cell("torch.allocate()\ntorch.fail()")
        self.assertEqual(self.stderr.getvalue().count("Cause: capacity"), 1)


if __name__ == "__main__":
    unittest.main()
