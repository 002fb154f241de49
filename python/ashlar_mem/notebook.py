"""Ashlar in a notebook.

    import ashlar_mem.notebook as notebook
    notebook.show("oom.pickle")                  # the report, in the cell
    notebook.show(torch.cuda.memory._snapshot())

    %load_ext ashlar_mem.notebook

    %%ashlar
    train(model)                                 # recorded; its report follows

The report is the page of `ashlar report --interactive`: one HTML file, which
loads nothing, so the notebook shows it without Ashlar as well.
"""
import argparse
import html
import os
import pickle
import subprocess
import sys
import tempfile

from . import callbacks

__all__ = ["show"]

REPORT_LIMIT = 300  # seconds
HEIGHT = 720  # pixels


def show(snapshot, height=HEIGHT):
    """Show the report on a snapshot, a dictionary or a path, in the cell."""
    try:
        from IPython.display import HTML, display

        display(HTML(frame(report(snapshot), height)))
    except Exception as e:
        callbacks.warn("no report is shown: %s: %s" % (type(e).__name__, e))


def frame(page, height=HEIGHT):
    """Return an iframe with the page inside.

    The page writes its state into its address, "#...". Without a base of its own
    that would be an address of the notebook, which a frame may not take.
    """
    head, found, rest = page.partition("<head>")
    if found:
        page = head + found + '<base href="about:srcdoc">' + rest
    return '<iframe title="Ashlar" style="width:100%%;height:%dpx;border:0" srcdoc="%s"></iframe>' % (int(height), html.escape(page))


def report(snapshot):
    """Return the report on a snapshot, a dictionary or a path, as HTML."""
    command = callbacks.recorder()._command()
    if command is None:
        raise RuntimeError("no command ashlar beside Python or on PATH; set ASHLAR_BIN")
    with tempfile.TemporaryDirectory() as folder:
        path = snapshot
        if isinstance(snapshot, dict):
            path = os.path.join(folder, "snapshot.pickle")
            with open(path, "wb") as f:
                pickle.dump(snapshot, f, protocol=4)
        page = os.path.join(folder, "report.html")
        # A command that was built without the page's engine writes the report that is only read.
        for more in (["--interactive"], []):
            done = subprocess.run([command, "report", os.path.abspath(os.path.expanduser(path)), "-o", page] + more,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=REPORT_LIMIT)
            if done.returncode == 0:
                with open(page, encoding="utf-8") as f:
                    return f.read()
    raise RuntimeError(done.stderr.decode("utf-8", "replace").strip() or "%s: exit status %d" % (command, done.returncode))


def load_ipython_extension(shell):
    """Define the magic %%ashlar: `%load_ext ashlar_mem.notebook` calls this."""
    shell.register_magic_function(lambda line, cell: _magic(shell, line, cell), magic_kind="cell", magic_name="ashlar")


def _magic(shell, line, cell):
    """Run a cell with its memory recorded, and show the report.

    usage: %%ashlar [--height PIXELS] [--path FILE]
    """
    parser = argparse.ArgumentParser(prog="%%ashlar", add_help=False)
    parser.add_argument("--height", type=int, default=HEIGHT)
    parser.add_argument("--path")
    try:
        options = parser.parse_args(line.split())
    except SystemExit:  # argparse has said what is wrong
        return
    callbacks.start({"path": options.path} if options.path else {})
    ran = _run(shell, cell)
    error = ran.error_before_exec or ran.error_in_exec
    path = _snapshot_of(error, options.path)
    if path is not None:
        show(path, options.height)
    if error is not None:
        raise error  # so that "run all" stops here


def _run(shell, cell):
    """Run a cell without showing its exception: the magic's own is shown."""
    silent = {"showtraceback": lambda *args, **kwargs: None, "showsyntaxerror": lambda *args, **kwargs: None}
    vars(shell).update(silent)
    try:
        return shell.run_cell(cell)
    finally:
        for name in silent:
            vars(shell).pop(name, None)


def _snapshot_of(error, path):
    """Return the file of the OOM that ended the cell, or one that is written now."""
    try:
        ashlar = callbacks.recorder()
        oom = ashlar._oom_of(error)
        if oom is not None:
            callbacks.verdict(oom)
            return ashlar._recorder.last.path if getattr(oom, "_ashlar_seen", False) and ashlar._recorder.last else None
        torch = sys.modules.get("torch")
        if error is not None or torch is None or not torch.cuda.is_initialized():
            return None
        return ashlar.dump(path)
    except Exception as e:
        callbacks.warn("%%%%ashlar: %s: %s" % (type(e).__name__, e))
        return None
