"""Checks ashlar_mem/callbacks.py in real frameworks, on a machine with an NVIDIA GPU.

    ASHLAR_BIN=bin/ashlar python callbacks_check.py

Needs torch, and uses transformers, Lightning and accelerate where they are
installed. In each framework a small job leaks until it dies under a limit of
2 GiB: its log must have the verdict, its exception the note, its snapshot the
step. Then the Trainer runs with recording and callback on and off in alternating
windows of one process, for what they cost. Prints a line of JSON for each case and
exits with 1 if a check failed. Takes about two minutes.
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

LIMIT = 2 << 30
LEAK = 64 << 20  # bytes a step
WINDOW, WINDOWS = 25, 41  # steps; the first window warms up
MOST = 0.02  # of the time of a step


def limit(torch):
    torch.cuda.set_per_process_memory_fraction(LIMIT / torch.cuda.get_device_properties(0).total_memory)


def net(torch, width=1024, layers=4):
    return torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))


# The jobs that die. Each keeps LEAK bytes in every step.


def plain():
    import torch
    from ashlar_mem.callbacks import watch

    limit(torch)
    model, kept = net(torch).cuda(), []
    with watch(path="oom.pickle") as run:
        for _ in run.steps(range(1000)):
            model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
            kept.append(torch.empty(LEAK, dtype=torch.uint8, device="cuda"))


def accelerate():
    import torch
    from accelerate import Accelerator
    from ashlar_mem.callbacks import watch

    limit(torch)
    accelerator = Accelerator(gradient_accumulation_steps=2)
    model = net(torch)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
    kept = []
    with watch(accelerator, path="oom.pickle") as run:
        for _ in run.steps(range(1000)):
            with accelerator.accumulate(model):
                accelerator.backward(model(torch.randn(64, 1024, device="cuda")).square().mean())
                optimizer.step()
                optimizer.zero_grad()
                kept.append(torch.empty(LEAK, dtype=torch.uint8, device="cuda"))


def transformers_trainer(torch, callbacks, steps, leak=0, width=1024, layers=4, batch=64):
    from transformers import Trainer, TrainingArguments

    kept = []

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net(torch, width, layers)

        def forward(self, x, labels=None):
            if leak:
                kept.append(torch.empty(leak, dtype=torch.uint8, device=x.device))
            out = self.net(x)
            return {"loss": out.square().mean(), "logits": out}

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return batch * 8

        def __getitem__(self, i):
            return {"x": torch.full((width,), i / len(self)), "labels": 0}

    arguments = TrainingArguments(output_dir="out", max_steps=steps, per_device_train_batch_size=batch, save_strategy="no", report_to=[],
                                  logging_steps=10, disable_tqdm=True)
    return Trainer(model=Model(), args=arguments, train_dataset=Data(), callbacks=callbacks)


def transformers():
    import torch
    from ashlar_mem.callbacks import TrainerCallback

    limit(torch)
    transformers_trainer(torch, [TrainerCallback(path="oom.pickle")], 1000, leak=LEAK).train()


def lightning():
    import torch
    import lightning.pytorch as pl
    from ashlar_mem.callbacks import LightningCallback

    limit(torch)
    kept = []

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net(torch)

        def training_step(self, batch, index):
            kept.append(torch.empty(LEAK, dtype=torch.uint8, device=self.device))
            return self.net(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    loader = torch.utils.data.DataLoader(torch.randn(64 * 1000, 1024), batch_size=64)
    trainer = pl.Trainer(accelerator="gpu", devices=1, max_steps=1000, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         callbacks=[LightningCallback(path="oom.pickle")])
    trainer.fit(Model(), loader)


# What the callback costs.


def overhead():
    """Print the time of a step with the callback and without it, by turns in one process."""
    import ashlar_mem.callbacks as callbacks
    import torch
    from transformers import TrainerCallback

    ashlar = callbacks.recorder()
    times = {True: [], False: []}

    class Switch(TrainerCallback):
        """Passes events on to the callback in every second window."""

        def __init__(self):
            self.ours = callbacks.TrainerCallback(path="never.pickle")
            self.on, self.begin = True, None

        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step % WINDOW == 0:
                torch.cuda.synchronize()
                if self.begin is not None and state.global_step > WINDOW:
                    times[self.on].append((time.perf_counter() - self.begin) / WINDOW)
                self.on = not self.on
                if self.on:
                    ashlar.record(path="never.pickle")
                else:
                    ashlar.stop()
                torch.cuda.synchronize()
                self.begin = time.perf_counter()
            if self.on:
                self.ours.on_step_begin(args, state, control, **kwargs)

        def on_step_end(self, args, state, control, **kwargs):
            if self.on:
                self.ours.on_step_end(args, state, control, **kwargs)

    transformers_trainer(torch, [Switch()], WINDOW * WINDOWS + 1, width=4096, layers=16, batch=512).train()
    # Neighbouring windows are compared, so that a clock that drifts does not count.
    ratios = sorted(on / off for on, off in zip(times[True], times[False]))
    print(json.dumps({"with_ms": 1e3 * sorted(times[True])[len(times[True]) // 2], "without_ms": 1e3 * sorted(times[False])[len(times[False]) // 2],
                      "windows": len(ratios), "overhead": ratios[len(ratios) // 2] - 1}))


def check_death(name):
    """Run a job that dies; return what is wrong with what it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, os.path.abspath(__file__), name], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        log = done.stdout
        if "No module named" in log:
            return {"case": name, "left_out": log.strip().splitlines()[-1]}
        wrong = []
        if done.returncode == 0 or "out of memory" not in log:
            wrong.append("it did not die of memory")
        if "ran out of memory\n" not in log or "Cause: " not in log:
            wrong.append("no verdict in the log")
        if sys.version_info >= (3, 11) and "More: ashlar explain --full" not in log:
            wrong.append("no note on the exception")
        path = os.path.join(folder, "oom.pickle")
        facts = {}
        if os.path.exists(path):
            with open(path, "rb") as f:
                facts = pickle.load(f)["ashlar"]
        if not facts.get("message"):
            wrong.append("no snapshot with the message")
        if not 2 <= (facts.get("step") or 0) < 100:
            wrong.append("the step is %s" % facts.get("step"))
        cause = next((line for line in log.splitlines() if line.startswith("Cause: ")), None)
        return {"case": name, "step": facts.get("step"), "cause": cause, "wrong": wrong, "log": log[-3000:] if wrong else None}


def main():
    failed = False
    for name in ("plain", "accelerate", "transformers", "lightning"):
        result = check_death(name)
        failed = failed or bool(result.get("wrong"))
        print(json.dumps(result), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "overhead"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"with_ms"')]
    if not lines:
        print(json.dumps({"case": "overhead", "wrong": [done.stderr[-2000:]]}))
        return 1
    result = json.loads(lines[0])
    print(json.dumps(dict(result, case="overhead", bar=MOST)))
    return 1 if failed or result["overhead"] > MOST else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        {"plain": plain, "accelerate": accelerate, "transformers": transformers, "lightning": lightning, "overhead": overhead}[sys.argv[1]]()
    else:
        sys.exit(main())
