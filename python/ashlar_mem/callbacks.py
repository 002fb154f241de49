"""Ashlar in a training loop: steps are marked, an OOM leaves a snapshot, and its
cause stands in the job's log and on the exception.

    from ashlar_mem.callbacks import TrainerCallback      # transformers
    Trainer(..., callbacks=[TrainerCallback()])

    from ashlar_mem.callbacks import LightningCallback    # Lightning
    Trainer(callbacks=[LightningCallback()])

    from ashlar_mem.callbacks import watch                # any loop
    with watch() as run:                                  # accelerate: watch(accelerator)
        for batch in run.steps(loader):
            ...

Importing this file imports no framework: a class is made when it is asked for.
The recorder does the recording, the command `ashlar explain` finds the cause.
Nothing here raises into the job: a failure is one line on standard error.

docs/callbacks.md of Ashlar describes the options and the figures.
"""
import functools
import importlib
import importlib.util
import sys
import threading

__all__ = ["TrainerCallback", "LightningCallback", "watch"]

GIB = 1 << 30

# Names of the figures, and the keys of torch.cuda.memory_stats() with their units.
FIGURES = {
    "memory/allocated_gib": ("allocated_bytes.all.current", GIB),
    "memory/allocated_peak_gib": ("allocated_bytes.all.peak", GIB),
    "memory/reserved_gib": ("reserved_bytes.all.current", GIB),
    "memory/reserved_peak_gib": ("reserved_bytes.all.peak", GIB),
    "memory/retries": ("num_alloc_retries", 1),
    "memory/ooms": ("num_ooms", 1),
}


def recorder():
    """Return the module ashlar.py: the one that is loaded, the package's, or a copy on the path.

    `ashlar` is the name of a microscopy program too, so what is found must be ours.
    """
    loaded = sys.modules.get("ashlar")
    if hasattr(loaded, "_recorder"):
        return loaded
    record = getattr(sys.modules.get(__package__ or ""), "record", None)
    if record is not None:
        return sys.modules[record.__module__]
    module = importlib.import_module("ashlar")
    if not hasattr(module, "_recorder"):
        raise ImportError("%s is another program; copy Ashlar's recorder ashlar.py beside the job, or install ashlar-mem" % module.__file__)
    return module


_warned = set()


def warn(text):
    """Write one line, once: a step that fails does so again and again."""
    if text in _warned:
        return
    _warned.add(text)
    try:
        sys.stderr.write("ashlar: %s\n" % " ".join(str(text).split()))
        sys.stderr.flush()
    except Exception:
        pass


def harmless(method):
    """Make of a method one whose failure is a warning."""

    @functools.wraps(method)
    def call(*args, **kwargs):
        try:
            return method(*args, **kwargs)
        except Exception as e:
            warn("%s: %s: %s" % (method.__name__, type(e).__name__, e))

    return call


@harmless
def start(options):
    """Record, unless the job does already and no options are given."""
    ashlar = recorder()
    if options or ashlar._recorder.max_entries is None:
        ashlar.record(**options)
    hook()


# The verdict.


@harmless
def verdict(error):
    """Complete the snapshot of an OOM that nobody caught, log its cause, and add it to the exception."""
    ashlar = recorder()
    oom = ashlar._oom_of(error)
    if oom is None:
        return
    try:
        text = ashlar._verdict(oom)
    except Exception as e:
        warn("no verdict: %s" % e)
        return
    if text is not None:
        sys.stderr.write("ashlar: rank %s ran out of memory\n%s\n" % (ashlar._recorder.last.facts["rank"], text))
        sys.stderr.flush()


_hooked = False


def hook():
    """Give the verdict before Python prints an exception that nobody caught.

    In a notebook no exception gets that far, but IPython tells how a cell ended.
    """
    global _hooked
    if _hooked:
        return
    _hooked = True
    top, thread_top = sys.excepthook, threading.excepthook

    def excepthook(kind, error, trace):
        verdict(error)
        top(kind, error, trace)

    def thread_excepthook(args):
        verdict(args.exc_value)
        thread_top(args)

    sys.excepthook, threading.excepthook = excepthook, thread_excepthook
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        shell.events.register("post_run_cell", lambda result=None: verdict(getattr(result, "error_in_exec", None)))


# The figures.


def figures():
    """Return the figures of the current device, none before CUDA is initialised."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return {}
    stats = torch.cuda.memory_stats()
    return {name: stats[key] / unit for name, (key, unit) in FIGURES.items() if key in stats}


class Sinks:
    """Where figures go. One that fails is not tried again."""

    def __init__(self):
        self.failed = set()

    def send(self, step, sinks):
        """Send the figures to each of sinks, which have a name and are called with the figures and the step."""
        values = None
        for name, sink in sinks:
            if name in self.failed:
                continue
            try:
                values = values or figures()
                if values:
                    sink(dict(values), step)
            except Exception as e:
                self.failed.add(name)
                warn("no more figures for %s: %s: %s" % (name, type(e).__name__, e))


def in_use():
    """Return the trackers that have a run open in this process, as sinks."""
    sinks = []
    wandb, mlflow = sys.modules.get("wandb"), sys.modules.get("mlflow")
    if getattr(wandb, "run", None) is not None:
        # They go into the job's next row: a row of ours would move its step on,
        # and W&B drops rows whose step lies behind.
        sinks.append(("W&B", lambda values, step: wandb.run.log(values, commit=False)))
    try:
        if mlflow is not None and mlflow.active_run() is not None:
            sinks.append(("MLflow", lambda values, step: mlflow.log_metrics(values, step=step)))
    except Exception as e:
        warn("MLflow: %s" % e)
    return sinks


def tensorboard(writer):
    """Return the sink that is a SummaryWriter of TensorBoard."""

    def sink(values, step):
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return "TensorBoard", sink


# The loops.


class watch:
    """A context for a loop of your own, with or without an Accelerator.

        with watch(every=10, writer=summary_writer) as run:
            for batch in run.steps(loader):
                ...

    accelerator  its trackers get the figures, and its accumulated batches count as one step
    writer       a SummaryWriter of TensorBoard for the figures
    every        steps between two lots of figures; 0 for none
    options      those of ashlar.record()

    It passes every exception on.
    """

    def __init__(self, accelerator=None, writer=None, every=10, **options):
        self.accelerator, self.writer, self.every = accelerator, writer, every
        self.sinks = Sinks()
        self.number = 0
        start(options)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            verdict(error)
        return False

    @harmless
    def step(self, n=None):
        """Say that step n begins; without n, the one after the last."""
        if self.number and self.every and self.number % self.every == 0:
            self.sinks.send(self.number, self.trackers())
        self.number = self.number + 1 if n is None else int(n)
        recorder().step(self.number)

    def steps(self, batches):
        """Yield the batches, and begin a step before each, or before the first of those accumulated."""
        begins = True
        for batch in batches:
            if begins:
                self.step()
            yield batch
            begins = self.accelerator is None or getattr(self.accelerator, "sync_gradients", True)

    def trackers(self):
        sinks = in_use()
        if self.writer is not None:
            sinks.append(tensorboard(self.writer))
        names = {name for name, _ in sinks}
        for tracker in getattr(self.accelerator, "trackers", ()):
            # W&B is there already, as is MLflow where its run is the active one.
            if {"wandb": "W&B", "mlflow": "MLflow"}.get(tracker.name) not in names:
                sinks.append((tracker.name, functools.partial(_track, tracker)))
        return sinks


def _track(tracker, values, step):
    tracker.log(values, step=step)


def _trainer_callback():
    from transformers import TrainerCallback as Base

    class TrainerCallback(Base):
        """A callback for the Trainer of transformers; options are those of ashlar.record()."""

        def __init__(self, **options):
            self.options = options
            self.sinks = Sinks()
            self.writer = None
            start(options)

        def __reduce__(self):
            return _made, ("TrainerCallback", self.options)

        @harmless
        def on_train_begin(self, args, state, control, **kwargs):
            self.writer = None

        @harmless
        def on_step_begin(self, args, state, control, **kwargs):
            recorder().step(state.global_step + 1)

        @harmless
        def on_step_end(self, args, state, control, **kwargs):
            # The trackers' own callbacks log after this one, so that W&B has both in one row.
            if control.should_log and state.is_world_process_zero:
                self.writer = self.writer or _writer_beside(self)
                sinks = in_use()
                self.sinks.send(state.global_step, sinks + [tensorboard(self.writer)] if self.writer else sinks)

    return TrainerCallback


def _writer_beside(callback):
    """Return the SummaryWriter of the Trainer's own callback for TensorBoard, None if there is none.

    A Trainer does not introduce its callbacks to each other. But it calls them
    from a method of the object that lists them.
    """
    frame = sys._getframe(1)
    while frame is not None:
        listed = getattr(frame.f_locals.get("self"), "callbacks", None)
        if isinstance(listed, list) and any(c is callback for c in listed):
            writers = (getattr(c, "tb_writer", None) for c in listed)
            return next((w for w in writers if w is not None), None)
        frame = frame.f_back
    return None


def _lightning_callback():
    names = ("lightning.pytorch", "pytorch_lightning")  # one package under two names, whose classes differ
    name = next((n for n in names if n in sys.modules), None)
    if name is None:
        name = next((n for n in names if importlib.util.find_spec(n.partition(".")[0]) is not None), names[0])
    Base = importlib.import_module(name).Callback

    class LightningCallback(Base):
        """A callback for the Trainer of Lightning; options are those of ashlar.record()."""

        def __init__(self, **options):
            self.options = options
            self.sinks = Sinks()
            self.step = None
            start(options)

        def __reduce__(self):  # a strategy that spawns processes pickles it
            return _made, ("LightningCallback", self.options)

        @harmless
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            step = trainer.global_step + 1
            if step != self.step:  # else the batch is one of those accumulated
                self.step = step
                recorder().step(step)

        @harmless
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            every, step = trainer.log_every_n_steps, trainer.global_step
            if every and step != self.step - 1 and step % every == 0 and trainer.is_global_zero:
                self.sinks.send(step, [(type(log).__name__, log.log_metrics) for log in trainer.loggers])

        @harmless
        def on_exception(self, trainer, pl_module, exception):
            verdict(exception)

    return LightningCallback


_makers = {"TrainerCallback": _trainer_callback, "LightningCallback": _lightning_callback}


def __getattr__(name):
    if name not in _makers:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    made = _makers[name]()
    made.__qualname__ = name
    globals()[name] = made
    return made


def _made(name, options):
    """Unpickle a callback."""
    return getattr(sys.modules[__name__], name)(**options)
