"""Tests of ashlar_mem/callbacks.py and notebook.py without a GPU or a framework.

torch is the fake in testdata/fake. transformers, Lightning, accelerate and the
trackers are stand-ins with the signatures of transformers 5.17, Lightning 2.6 and
accelerate 1.15, as far as they are called.
"""
import copy
import importlib
import os
import pickle
import subprocess
import sys
import textwrap
import types
import unittest
from unittest import mock

from recorder_case import HERE, Case, JobCase

NOTES = hasattr(BaseException, "add_note")

VERDICT = """oom.pickle: device 0; 5 events
Cause: capacity (certain), in train.py:9
Try this first: a smaller batch

Who holds the memory
  all of it"""


class Command:
    """A stand-in for the command ashlar, a script that says what it was asked."""

    def __init__(self, folder, body=None):
        self.path = os.path.join(folder, "ashlar")
        with open(self.path, "w") as f:
            f.write("#!%s\nimport sys\n%s\n" % (sys.executable, body or "print(%r)" % VERDICT))
        os.chmod(self.path, 0o755)


class CallbackCase(Case):
    def setUp(self):
        super().setUp()
        self.enter(mock.patch.dict(sys.modules, ashlar=self.ashlar))
        for name in [n for n in sys.modules if n.partition(".")[0] == "ashlar_mem"]:
            del sys.modules[name]
        self.enter(mock.patch.object(sys, "path", [HERE] + sys.path))
        self.callbacks = importlib.import_module("ashlar_mem.callbacks")
        self.tools = os.path.join(self.folder, "tools")
        os.mkdir(self.tools)
        os.environ["ASHLAR_BIN"] = Command(self.tools).path
        self.options = {"path": os.path.join(self.folder, "m-{rank}.pickle")}

    def install(self, name, **members):
        module = types.ModuleType(name)
        vars(module).update(members)
        self.enter(mock.patch.dict(sys.modules, {name: module}))
        return module

    def wandb(self):
        rows = []
        self.install("wandb", run=types.SimpleNamespace(log=lambda values, commit=True: rows.append((values, commit))))
        return rows

    def mlflow(self):
        rows = []
        self.install("mlflow", active_run=lambda: "run", log_metrics=lambda metrics, step=None: rows.append((metrics, step)))
        return rows

    def marked(self):
        return [n for n, _ in self.ashlar._recorder.steps]

    def warnings(self):
        return [line for line in self.stderr.getvalue().splitlines() if line.startswith("ashlar: ") and ": wrote " not in line]

    def out_of_memory(self):
        self.torch.allocate()
        return self.oom()

    def check_verdict(self, error):
        self.assertEqual(self.facts()["message"], self.torch.MESSAGE)
        log = self.stderr.getvalue()
        self.assertEqual(log.count("ashlar: rank 0 ran out of memory\n" + VERDICT + "\n"), 1, log)
        if NOTES:
            path = os.path.join(self.folder, "m-0.pickle")
            self.assertEqual(error.__notes__, [VERDICT.partition("\n\n")[0] + "\nMore: ashlar explain --full " + path])


class Writer:
    """A stand-in for TensorBoard's SummaryWriter."""

    def __init__(self):
        self.rows = []

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.rows.append((tag, scalar_value, global_step))


class TestVerdict(CallbackCase):
    def test_watch(self):
        error = None
        with self.assertRaises(RuntimeError) as caught, self.callbacks.watch(**self.options) as run:
            run.step()
            error = self.out_of_memory()
            raise error
        self.assertIs(caught.exception, error)
        self.check_verdict(error)
        self.die(error)  # the end of the process tells it no second time
        self.check_verdict(error)

    def test_nobody_catches(self):
        self.callbacks.watch(**self.options)
        error = self.out_of_memory()
        self.die(error)
        self.check_verdict(error)
        self.assertEqual(self.exceptions, [error])

    def test_wrapped(self):
        error = self.out_of_memory_under_watch()
        outer = ValueError("step failed")
        outer.__cause__ = error
        self.die(outer)
        self.check_verdict(error)

    def out_of_memory_under_watch(self):
        self.callbacks.watch(**self.options)
        return self.out_of_memory()

    def test_caught_by_the_job(self):
        """A loop that halves its batch gets no verdict."""
        with self.callbacks.watch(**self.options):
            self.out_of_memory()
        self.assertNotIn("Cause", self.stderr.getvalue())

    def test_other_errors(self):
        with self.assertRaises(KeyError), self.callbacks.watch(**self.options):
            raise KeyError("x")
        self.assertEqual((self.files(), self.warnings()), (["tools"], []))

    def test_failures(self):
        """Whatever the command does, the job's exception is passed on, and one line says why there is no verdict."""
        for name, body, want in (
            ("fails", "sys.stderr.write('ashlar: no such file\\nmore\\n'); sys.exit(2)", "no verdict: %s explain: ashlar: no such file"),
            ("fails silently", "sys.exit(3)", "no verdict: %s explain: exit status 3"),
        ):
            with self.subTest(name):
                path = os.environ["ASHLAR_BIN"] = Command(self.tools, body).path
                self.clock += 1000
                before = len(self.warnings())
                error = self.out_of_memory_under_watch()
                self.die(error)
                self.assertEqual(self.warnings()[before:], ["ashlar: " + want % path])
                self.assertIs(self.exceptions[-1], error)

    def test_slow_command(self):
        os.environ["ASHLAR_BIN"] = Command(self.tools, "import time; time.sleep(60)").path
        with mock.patch.object(subprocess, "run", side_effect=subprocess.TimeoutExpired("ashlar", 120)):
            self.die(self.out_of_memory_under_watch())
        self.assertEqual(len(self.warnings()), 1)
        self.assertIn("timed out", self.warnings()[0])

    def test_no_command(self):
        del os.environ["ASHLAR_BIN"]
        os.environ["PATH"] = self.folder
        with mock.patch.object(sys, "executable", os.path.join(self.folder, "python")):
            self.die(self.out_of_memory_under_watch())
        self.assertEqual(self.warnings(), ["ashlar: no verdict: no command ashlar beside Python or on PATH; set ASHLAR_BIN"])

    def test_finds_the_command(self):
        find, given = self.callbacks.recorder()._command, os.environ.pop("ASHLAR_BIN")
        with mock.patch.object(sys, "executable", os.path.join(self.folder, "python")):
            os.environ["PATH"] = self.tools
            self.assertEqual(find(), given)
            beside = Command(self.folder).path
            self.assertEqual(find(), beside)
            os.environ["ASHLAR_BIN"] = "/elsewhere/ashlar"
            self.assertEqual(find(), "/elsewhere/ashlar")

    def test_recording_already(self):
        """The job's own record() stays as it is."""
        self.record(max_entries=77)
        self.callbacks.watch()
        self.assertEqual(self.ashlar._recorder.max_entries, 77)
        self.assertEqual(self.ashlar._recorder.path, self.options["path"])

    def test_another_ashlar(self):
        """A program of the same name is not taken for the recorder."""
        other = self.install("ashlar", __file__="/microscopy/ashlar.py")
        vars(sys.modules["ashlar_mem"]).pop("record", None)  # a copy of callbacks.py without the package
        with self.callbacks.watch() as run:
            run.step()
        self.assertIs(sys.modules["ashlar"], other)
        self.assertEqual(len(self.warnings()), 2)
        self.assertIn("/microscopy/ashlar.py is another program", self.warnings()[0])


class TestWatch(CallbackCase):
    def test_figures(self):
        self.torch.cuda.init()
        rows, metrics, writer = self.wandb(), self.mlflow(), Writer()
        with self.callbacks.watch(writer=writer, every=2, **self.options) as run:
            self.assertEqual(list(run.steps("abcde")), list("abcde"))
        self.assertEqual(self.marked(), [1, 2, 3, 4, 5])
        reserved = 22 / 1024
        self.assertEqual([(values["memory/reserved_gib"], commit) for values, commit in rows], [(reserved, False)] * 2)
        self.assertEqual([(values["memory/reserved_peak_gib"], step) for values, step in metrics], [(reserved, 2), (reserved, 4)])
        self.assertEqual([row for row in writer.rows if row[0] == "memory/ooms"], [("memory/ooms", 0, 2), ("memory/ooms", 0, 4)])
        self.assertEqual({tag for tag, _, _ in writer.rows}, set(self.callbacks.FIGURES))

    def test_before_cuda(self):
        rows = self.wandb()
        with self.callbacks.watch(every=1, **self.options) as run:
            list(run.steps("abc"))
        self.assertEqual((rows, self.warnings()), ([], []))

    def test_tracker_fails(self):
        self.torch.cuda.init()
        rows = self.wandb()
        self.install("mlflow", active_run=lambda: "run", log_metrics=mock.Mock(side_effect=ConnectionError("no server")))
        with self.callbacks.watch(every=1, **self.options) as run:
            list(run.steps("abcd"))
        self.assertEqual(len(rows), 3)
        self.assertEqual(self.warnings(), ["ashlar: no more figures for MLflow: ConnectionError: no server"])

    def test_recorder_fails(self):
        with mock.patch.object(self.ashlar, "step", side_effect=OSError("x")), self.callbacks.watch(**self.options) as run:
            self.assertEqual(list(run.steps("ab")), ["a", "b"])
        self.assertEqual(self.warnings(), ["ashlar: step: OSError: x"])

    def test_accelerator(self):
        """Accumulated batches are one step; the trackers of the accelerator are told."""
        self.torch.cuda.init()
        rows, logged = self.wandb(), []
        trackers = [
            types.SimpleNamespace(name="wandb", log=lambda values, step=None: self.fail("a row too many")),
            types.SimpleNamespace(name="tensorboard", log=lambda values, step=None: logged.append(step)),
        ]
        accelerator = types.SimpleNamespace(sync_gradients=True, trackers=trackers)
        with self.callbacks.watch(accelerator, every=1, **self.options) as run:
            for i, _ in enumerate(run.steps("aabbcc")):
                accelerator.sync_gradients = i % 2 == 1
        self.assertEqual(self.marked(), [1, 2, 3])
        self.assertEqual((logged, len(rows)), ([1, 2], 2))


class TestTrainer(CallbackCase):
    def setUp(self):
        super().setUp()

        class Base:
            def on_train_begin(self, args, state, control, **kwargs):
                pass

            on_step_begin = on_step_end = on_train_begin

        self.install("transformers", TrainerCallback=Base)
        self.base = Base

    def train(self, callbacks, steps, should_log=lambda step: True, zero=True):
        """Call as the CallbackHandler of transformers does."""
        state, control = types.SimpleNamespace(global_step=0, is_world_process_zero=zero), types.SimpleNamespace(should_log=False)

        class Handler:
            def __init__(self):
                self.callbacks = callbacks

            def call_event(self, event, args, state, control, **kwargs):
                for callback in self.callbacks:
                    getattr(callback, event)(args, state, control, model=None, processing_class=None, optimizer=None, lr_scheduler=None, **kwargs)

        handler = Handler()
        handler.call_event("on_train_begin", None, state, control)
        for _ in range(steps):
            handler.call_event("on_step_begin", None, state, control)
            state.global_step += 1
            control.should_log = should_log(state.global_step)
            handler.call_event("on_step_end", None, state, control)

    def test_steps_and_figures(self):
        self.torch.cuda.init()
        rows, metrics = self.wandb(), self.mlflow()
        board = self.base()
        board.tb_writer = Writer()
        ours = self.callbacks.TrainerCallback(**self.options)
        self.assertIsInstance(ours, self.base)
        self.train([board, ours], 4, should_log=lambda step: step % 2 == 0)
        self.assertEqual(self.marked(), [1, 2, 3, 4])
        self.assertEqual([step for _, step in metrics], [2, 4])
        self.assertEqual([commit for _, commit in rows], [False, False])
        self.assertEqual([row[2] for row in board.tb_writer.rows if row[0] == "memory/retries"], [2, 4])
        self.assertEqual(self.warnings(), [])

    def test_other_ranks(self):
        self.torch.cuda.init()
        rows = self.wandb()
        self.train([self.callbacks.TrainerCallback(**self.options)], 2, zero=False)
        self.assertEqual((rows, self.marked()), ([], [1, 2]))

    def test_verdict(self):
        self.callbacks.TrainerCallback(**self.options)
        error = self.out_of_memory()
        self.die(error)
        self.check_verdict(error)

    def test_copies(self):
        ours = self.callbacks.TrainerCallback(**self.options)
        for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
            self.assertIs(type(other), type(ours))
            self.assertEqual(other.options, self.options)

    def test_nothing_breaks(self):
        ours = self.callbacks.TrainerCallback(**self.options)
        ours.on_step_begin(None, None, None)
        ours.on_step_end(None, None, None)
        self.assertEqual(len(self.warnings()), 2)

    def test_not_installed(self):
        with mock.patch.dict(sys.modules, transformers=None), self.assertRaises(ImportError):
            self.callbacks.TrainerCallback


class TestLightning(CallbackCase):
    def setUp(self):
        super().setUp()
        self.install("lightning")
        self.module = self.install("lightning.pytorch", Callback=type("Callback", (), {}))

    def trainer(self, logger):
        return types.SimpleNamespace(global_step=0, log_every_n_steps=2, is_global_zero=True, loggers=[logger])

    def test_steps_and_figures(self):
        """Two batches are accumulated for each step."""
        self.torch.cuda.init()
        logged = []
        logger = types.SimpleNamespace(log_metrics=lambda metrics, step=None: logged.append((step, metrics["memory/allocated_gib"])))
        trainer, ours = self.trainer(logger), self.callbacks.LightningCallback(**self.options)
        self.assertIsInstance(ours, self.module.Callback)
        for i in range(8):
            ours.on_train_batch_start(trainer, None, None, i)
            trainer.global_step += i % 2
            ours.on_train_batch_end(trainer, None, None, None, i)
        self.assertEqual(self.marked(), [1, 2, 3, 4])
        self.assertEqual([step for step, _ in logged], [2, 4])
        self.assertEqual(self.warnings(), [])

    def test_verdict(self):
        ours = self.callbacks.LightningCallback(**self.options)
        error = self.out_of_memory()
        ours.on_exception(None, None, error)
        self.check_verdict(error)

    def test_other_package(self):
        """The class is that of the package which the job has imported."""
        del sys.modules["lightning.pytorch"]
        other = self.install("pytorch_lightning", Callback=type("Callback", (), {}))
        self.assertTrue(issubclass(self.callbacks.LightningCallback, other.Callback))

    def test_pickled(self):
        ours = pickle.loads(pickle.dumps(self.callbacks.LightningCallback(**self.options)))
        self.assertIs(type(ours), self.callbacks.LightningCallback)


class TestJobs(JobCase):
    def test_import_needs_nothing(self):
        self.add("job.py", textwrap.dedent("""
            import sys
            sys.path.insert(0, %r)
            import ashlar_mem.callbacks, ashlar_mem.notebook
            print([n for n in ("torch", "transformers", "lightning", "IPython", "wandb", "mlflow") if n in sys.modules])
        """ % HERE))
        done = self.run_job("job.py")
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))

    def test_dies(self):
        """The log of a whole job: the verdict, and the traceback with its note."""
        with mock.patch.dict(os.environ, ASHLAR_BIN=Command(self.folder).path):
            self.add("job.py", textwrap.dedent("""
                import sys
                sys.path.insert(0, %r)
                from ashlar_mem.callbacks import watch
                import torch
                with watch(path="oom.pickle") as run:
                    for batch in run.steps(range(3)):
                        torch.allocate()
                        if batch == 2:
                            torch.fail()
            """ % HERE))
            done = self.run_job("job.py")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.load("oom.pickle")["ashlar"]["step"], 3)
        self.assertEqual(done.stderr.count("rank 1 ran out of memory"), 1)
        self.assertEqual(done.stderr.count("Cause: capacity"), 1 + NOTES)
        self.assertEqual(done.stderr.count("Traceback"), 1)


if __name__ == "__main__":
    unittest.main()
