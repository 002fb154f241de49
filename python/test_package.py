"""Tests of the package ashlar_mem as it lies in the sources, beside the single files."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*argv, script=None):
    with tempfile.TemporaryDirectory() as folder:
        if script is not None:
            with open(os.path.join(folder, "job.py"), "w") as f:
                f.write(script)
        return subprocess.run([sys.executable, "-B", *argv], cwd=folder, capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=HERE, PYTHONSAFEPATH=""))


class TestPackage(unittest.TestCase):
    def test_names(self):
        done = run("-c", """
import sys, ashlar_mem
assert ashlar_mem.record is ashlar_mem.ashlar.record
assert "torch" not in sys.modules and "ashlar_mem.ashlar_torch" not in sys.modules
assert "ashlar" not in sys.modules  # that name belongs to another project
assert "record" in dir(ashlar_mem) and "info" not in dir(ashlar_mem)  # what walks over names imports nothing
try:
    ashlar_mem.nothing
except AttributeError as e:
    print(e)
""")
        self.assertEqual((done.stdout, done.stderr), ("module 'ashlar_mem' has no attribute 'nothing'\n", ""))

    def test_lists_match(self):
        import ast
        import ashlar_mem

        for module, names in ashlar_mem._LATER.items():
            for folder in (HERE, os.path.join(HERE, "ashlar_mem")):
                path = os.path.join(folder, module + ".py")
                if not os.path.exists(path):
                    continue
                with open(path) as f:
                    tree = ast.parse(f.read())
                exported = [ast.literal_eval(s.value) for s in tree.body if isinstance(s, ast.Assign) and getattr(s.targets[0], "id", "") == "__all__"]
                for name in exported[0] if exported else []:
                    self.assertIn(name, names, module)

    def test_script(self):
        done = run("-m", "ashlar_mem", "job.py", "--batch", "8",
                   script="import sys\nprint(__name__, sys.argv)")
        self.assertEqual(done.stdout, "__main__ ['job.py', '--batch', '8']\n", done.stderr)

    def test_without_torch(self):
        done = run("-c", """
import importlib.util, runpy, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
sys.argv = ["x", "job.py"]
runpy.run_module("ashlar_mem", run_name="__main__", alter_sys=True)
""", script="print('ran')")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertIn("there is no PyTorch for " + sys.executable, done.stderr)

    def test_usage(self):
        done = run("-m", "ashlar_mem")
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: python -m ashlar_mem [options] SCRIPT", done.stderr)


if __name__ == "__main__":
    unittest.main()
