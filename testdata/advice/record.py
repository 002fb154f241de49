"""Records the cases of this folder on a machine with an NVIDIA GPU and PyTorch.

    python record.py --out DIR [--dir SCRIPTS] [--jobs 14] [--budget 530] [--only NAME ...]

Every case is run without a limit, with its mistake and with its cures, to find a
limit under which the mistake dies and the cures live. Under that limit the
mistake is recorded by ashlar.py, and every fix that the script knows and every
setting of SETTINGS is tried. DIR gets

    cases.jsonl      a row for each case: the truth
    NAME.pickle.gz   the recording
    runs.jsonl       every run; a second call with the same DIR goes on from there
                     (on a fresh machine: unpack advice.tar in DIR first)
    advice.tar       all of these in one file

--dry walks through all of it with made-up results, on any machine.
Cases that say "alone" take the whole device and are run last, one at a time.
"""
import argparse
import ast
import concurrent.futures
import glob
import gzip
import hashlib
import importlib.util
import json
import os
import pickle
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ASHLAR = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python", "ashlar.py")
MIB = 1 << 20
SETTINGS = ["expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:512", "garbage_collection_threshold:0.8", "roundup_power2_divisions:4"]
EXPANDABLE = SETTINGS[0]
CAP_MIB = 20480  # of a run without a limit
MORE = 1.25  # "memory": the limit times this
LOWER = 6  # limits to try below those of attempts()
TIMEOUT = 60
# What PyTorch and its libraries say when there is no memory left.
OUT = re.compile(r"out of memory|ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED|CUDNN_STATUS|unable to find an engine")
SHARED_KEPT = {"loss_list": ["train.py:7", "train.py:8"], "preds_on_gpu": ["train.py:7"]}


class Later(Exception):
    """The time is up; the next call goes on."""


class Unusable(Exception):
    """No limit shows the mistake."""


def load_cases(only):
    cases = []
    for path in sorted(glob.glob(os.path.join(scripts, "*.py"))):
        name = os.path.basename(path)[:-3]
        if name in ("case", "record", "spawn") or only and name not in only:
            continue
        with open(path) as f:
            source = f.read()
        case = ast.literal_eval(source.splitlines()[0].partition("=")[2].strip())
        case.update(name=name, script=path, args=[], kept=["%s.py:%d" % (name, i) for i, line in enumerate(source.splitlines(), 1) if line.endswith("# KEPT")])
        case.setdefault("limit", "between")
        case.setdefault("weight", 0.6)
        case["sha"] = digest(path, os.path.join(HERE, "case.py"))
        missing = [m for m in case.get("needs", []) if importlib.util.find_spec(m) is None]
        if missing and not dry:
            print("%s: left out, there is no %s" % (name, ", ".join(missing)), flush=True)
            continue
        cases.append(case)
    return cases + (load_shared(only) if scripts == HERE else [])


def load_shared(only):
    """The six cases that were recorded before."""
    folder, cases = os.path.join(HERE, "shared"), []
    script = os.path.join(folder, "fixes.py")
    with open(script) as f:
        fixes = ast.literal_eval(re.search(r"^FIXES = (\{.*?^\})", f.read(), re.S | re.M).group(1))
    with open(os.path.join(folder, "cases.jsonl")) as f:
        for row in map(json.loads, f):
            name = row["name"]
            if only and name not in only:
                continue
            own = os.path.join(folder, name + ".py")
            cases.append({"name": name, "script": script, "args": [name], "own": own, "root": row["root"], "limit": "given", "limit_mib": row["limit_mib"],
                          "message": row["message"], "cures": [], "fixes": fixes[name], "kept": SHARED_KEPT.get(name, []), "sha": digest(script, own, os.path.join(HERE, "case.py"))})
    return cases


def digest(*paths):
    h = hashlib.sha1()
    for path in paths:
        with open(path, "rb") as f:
            h.update(f.read())
    return h.hexdigest()[:10]


class Spawner:
    """A spawn.py for one setting of the allocator."""

    def __init__(self, conf):
        env = dict(clean(os.environ), OMP_NUM_THREADS="2")
        if conf:
            env["PYTORCH_CUDA_ALLOC_CONF"] = conf
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "spawn.py")], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock, self.waiting, self.last = threading.Lock(), {}, 0
        word = self.process.stdout.readline().decode().strip()
        self.ready = word == "ready"
        if self.ready:
            threading.Thread(target=self.listen, daemon=True).start()
        else:
            print("spawn.py: %s; every run gets a process of its own" % (word or "it ended"), flush=True)

    def listen(self):
        for line in self.process.stdout:
            row = json.loads(line)
            with self.lock:
                self.waiting.pop(row["id"]).set_result(row["code"])
        with self.lock:
            self.ready = False
            for future in self.waiting.values():
                future.set_result(None)

    def run(self, **job):
        """The exit code of a script, or None if spawn.py has ended."""
        done = concurrent.futures.Future()
        with self.lock:
            if not self.ready:
                return None
            self.last += 1
            self.waiting[self.last] = done
            self.process.stdin.write((json.dumps(dict(job, id=self.last)) + "\n").encode())
            self.process.stdin.flush()
        return done.result()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


spawners = {}


def clean(env):
    kept = {k: v for k, v in env.items() if not re.fullmatch(r"PYTORCH_.*ALLOC_CONF", k)}
    return dict(kept, PYTHONPATH=HERE)  # case.py


class Bench:
    """Runs scripts, a few at a time, and remembers what came of it."""

    def __init__(self, out, jobs, deadline):
        self.out, self.deadline = out, deadline
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.lock, self.known, self.started = threading.Lock(), {}, 0
        self.log = os.path.join(out, "runs.jsonl")
        if os.path.exists(self.log):
            with open(self.log) as f:
                for line in f:
                    row = json.loads(line)
                    if row["outcome"] in ("survived", "died"):  # what failed otherwise is tried again
                        self.known[row["key"]] = row

    def start(self, case, fix="", conf="", limit=0, record=None, script=None):
        """A future of the run's result."""
        key = "|".join([case["name"], case["sha"], fix, conf, str(limit), "record" if record else "own" if script else ""])
        if key in self.known and (not record or self.known[key]["outcome"] != "died" or os.path.exists(record)):
            done = concurrent.futures.Future()
            done.set_result(self.known[key])
            return done
        return self.pool.submit(self.run, key, case, fix, conf, limit, record, script)

    def run(self, key, case, fix, conf, limit, record, script):
        if time.monotonic() > self.deadline:
            raise Later()
        result = (fake if dry else execute)(case, fix, conf, limit, record, script)
        result["key"] = key
        with self.lock:
            self.started += 1
            self.known[key] = result
            with open(self.log, "a") as f:
                f.write(json.dumps(result) + "\n")
            if result["outcome"] in ("error", "timeout"):
                print("%s: %s: %s" % (key, result["outcome"], result["tail"][-600:]), flush=True)
        return result


def execute(case, fix, conf, limit, record, script):
    with tempfile.TemporaryDirectory() as folder:
        report, raw, errors = [os.path.join(folder, name) for name in ("report.json", "out.pickle", "stderr.txt")]
        job = dict(FIX=fix, LIMIT_MIB=str(limit), REPORT=report, OMP_NUM_THREADS="2", PYTHONDONTWRITEBYTECODE="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
        if record and case["root"] == "none":
            job["DUMP"] = raw
        path, args = script or case["script"], [] if script else case["args"]
        begin, code = time.monotonic(), None
        if not record and not case.get("alone"):
            code = spawners[conf].run(script=path, args=args, env=job, folder=folder, stderr=errors, timeout=TIMEOUT)
        if code is None:
            env = dict(clean(os.environ), **job)
            if conf:
                env["PYTORCH_CUDA_ALLOC_CONF"] = conf
            recorder = [ASHLAR, "--path", raw, "--keep", "1"] if record else []
            with open(errors, "wb") as f:
                try:
                    code = subprocess.run([sys.executable] + recorder + [path] + args, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f, timeout=TIMEOUT).returncode
                except subprocess.TimeoutExpired:
                    code = -9
        with open(errors, "rb") as f:
            text = f.read().decode("utf-8", "replace")
        result = {"outcome": "survived" if code == 0 else "timeout" if code == -9 else "died" if OUT.search(text) else "error", "tail": "" if code == 0 else text[-1500:]}
        found = re.findall(r"^.*OutOfMemoryError: .*$", text, re.M)
        if found:
            result["message"] = found[-1]
        result["seconds"] = round(time.monotonic() - begin, 1)
        if os.path.exists(report):
            with open(report) as f:
                result.update(json.load(f))
        if record and os.path.exists(raw):
            result.update(pack(raw, record))
        return result


def pack(raw, path):
    """Write a recording without the names of this machine's folders."""
    with open(raw, "rb") as f:
        snapshot = pickle.load(f)
    seen = set()

    def rename(frames):
        for frame in frames:
            if id(frame) not in seen:
                seen.add(id(frame))
                name = re.sub(r"^.*/site-packages/", "/venv/lib/python3.12/site-packages/", frame["filename"])
                name = re.sub(r"^.*/lib/python3\.\d+/(?!site-packages)", "/usr/lib/python3.12/", name)
                frame["filename"] = re.sub(r"^(%s)/" % "|".join(map(re.escape, (scripts, HERE, os.path.dirname(ASHLAR)))), "/job/", name)

    for segment in snapshot["segments"]:
        rename(segment.get("frames", []))
        for block in segment["blocks"]:
            rename(block.get("frames", []))
    for trace in snapshot["device_traces"]:
        for event in trace:
            rename(event.get("frames", []))
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write(pickle.dumps(snapshot, protocol=4))
    facts = snapshot.get("ashlar", {})
    return {"events": sum(map(len, snapshot["device_traces"])), "size": os.path.getsize(path), "ooms": facts.get("ooms"), "late": facts.get("late"), "said": facts.get("message")}


def mib(result, key):
    return result[key] / MIB


def weigh(lo, hi, weight):
    return int(lo + weight * (hi - lo))


def attempts(bench, case):
    """The limits to try, best first: the first under which the mistake dies is taken."""
    mode, weight = case["limit"], case["weight"]
    if mode == "shared":
        alone = lives(bench.start(case, fix="others").result(), "without the other process")
        return [int(w * mib(alone, "reserved")) for w in (weight, weight * 0.8)]
    if mode == "over":
        right = lives(bench.start(case, fix=case["cures"][0] if case["cures"] else "", limit=CAP_MIB).result(), "without the mistake")
        return [int(weight * mib(right, "reserved"))]
    mistake = bench.start(case, limit=CAP_MIB)
    if mode in ("tight", "below", "reserved"):
        return search(bench, case, mistake.result())
    cures = {fix: bench.start(case, fix=fix, limit=CAP_MIB) for fix in case["cures"]}
    needs = [mib(r, "reserved") for r in (f.result() for f in cures.values()) if r["outcome"] == "survived"]
    if not needs:
        raise Unusable("no cure lives without a limit")
    wrong = mistake.result()
    hi = CAP_MIB if wrong["outcome"] == "died" else mib(lives(wrong, "the mistake"), "allocated")
    lo = max(needs) if hi > 1.05 * max(needs) else min(needs)
    if hi < 1.01 * lo:
        raise Unusable("the mistake needs %.0f MiB, its cure %.0f" % (hi, lo))
    return [weigh(lo, hi, w) for w in (weight, 0.6 * weight, 0.3 * weight, 0.1 * weight)]


def search(bench, case, mistake):
    """Limits under which only the layout kills: with the memory packed better, the run lives."""
    mode = case["limit"]
    need, most = mib(lives(mistake, "the mistake"), "allocated"), mib(mistake, "reserved")
    if mode == "reserved":
        limits = [weigh(need, most, w) for w in (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)]
        better = {"fix": case["cures"][0]}
    else:
        middle = min(mib(lives(bench.start(case, conf=EXPANDABLE, limit=CAP_MIB).result(), "expandable"), "reserved"), most)
        limits = [weigh(need, middle, w) for w in (0.1, 0.4, 0.7)] + [weigh(middle, most, w) for w in (0.01, 0.05, 0.12, 0.25, 0.45, 0.7)]
        better = {"conf": EXPANDABLE}
    limits = sorted({n + 1 for n in limits if n + 1 > need}, reverse=True)
    plain = {n: bench.start(case, limit=n) for n in limits}
    other = {n: bench.start(case, limit=n, **better) for n in limits}
    want = "died" if mode == "below" else "survived"
    good = [n for n in limits if plain[n].result()["outcome"] == "died" and other[n].result()["outcome"] == want]
    if not good:
        raise Unusable("no limit separates: " + ", ".join("%d %s %s" % (n, plain[n].result()["outcome"], other[n].result()["outcome"]) for n in limits))
    return good


def lives(result, what):
    if result["outcome"] != "survived":
        raise Unusable("%s: %s" % (what, result["outcome"]))
    return result


def judge(bench, case):
    """The row of a case."""
    row = {"name": case["name"], "file": case["name"] + ".pickle.gz", "root": case["root"], "kept": case["kept"], "cures": case["cures"]}
    if case["limit"] == "given":
        row.update(file="shared/" + row["file"], limit_mib=case["limit_mib"], message=case["message"])
    else:
        path, want = os.path.join(bench.out, row["file"]), "survived" if case["root"] == "none" else "died"
        limits, lower = attempts(bench, case), LOWER if case["limit"] == "between" else 0
        for limit in limits:
            result = bench.start(case, limit=limit, record=path).result()
            if result["outcome"] == want:
                break
            if limit == limits[-1] and result["outcome"] == "survived" and lower:  # cuDNN makes do with a smaller workspace
                lower -= 1
                limits.append(int(0.9 * mib(result, "allocated")))
        else:
            raise Unusable("%s under %s MiB" % (result["outcome"], limit))
        row.update(limit_mib=limit, message=result.get("message", ""), torch=result.get("torch"), died_at_step=result.get("step"), events=result.get("events"),
                   size=result.get("size"), ooms=result.get("ooms"), late=result.get("late"))
        if want == "died" and not result.get("said"):
            row["note"] = "the recorder saw no message"
    limit = row["limit_mib"]
    runs = {}
    if case["root"] != "none":
        runs = {fix: bench.start(case, fix=fix, limit=limit) for fix in case["fixes"]}
        for conf in [EXPANDABLE] if case.get("alone") else SETTINGS:  # alone is slow
            runs[conf] = bench.start(case, conf=conf, limit=limit, script=case.get("own"))
        runs["memory"] = bench.start(case, limit=int(MORE * limit))
    row["survives"], row["needs_mib"] = {kind: False for kind in case.get("already", [])}, {}  # what the script does already did not help
    for kind, future in runs.items():
        result = future.result()
        if result["outcome"] in ("survived", "died"):
            row["survives"][kind] = result["outcome"] == "survived"
        if result["outcome"] == "survived" and "reserved" in result:
            row["needs_mib"][kind] = round(mib(result, "reserved"))
    if case["cures"] and runs and not any(row["survives"].get(fix) for fix in case["cures"]):
        raise Unusable("no cure lives under %s MiB" % limit)
    return row


def fake(case, fix, conf, limit, record, script):
    """What a run might have given, so that --dry walks every path."""
    need = 1000 if fix in case["cures"] or fix == "others" or case["root"] == "none" else 3000
    reserved = need + (50 if conf == EXPANDABLE else 600)
    died = bool(limit) and fix != "others" and limit < (need if case["root"] not in ("fragmentation", "stranded") else reserved)
    if record:
        open(record, "wb").close()
    return {"outcome": "died" if died else "survived", "tail": "", "allocated": need * MIB, "reserved": reserved * MIB, "step": 3, "torch": "dry", "said": "CUDA out of memory"}


def write_rows(out, rows):
    with open(os.path.join(out, "cases.jsonl"), "w") as f:
        for name in sorted(rows):
            f.write(json.dumps(rows[name]) + "\n")


def pack_all(out):
    with tarfile.open(os.path.join(out, "advice.tar"), "w") as tar:
        for path in sorted(glob.glob(os.path.join(out, "*"))):
            if not path.endswith(".tar"):
                tar.add(path, os.path.basename(path))


def main():
    global dry, scripts
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--dir", default=HERE, help="the folder of the scripts")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--budget", type=float, default=530, help="seconds after which no run is started")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    dry, scripts = options.dry, os.path.abspath(options.dir)
    out = os.path.abspath(options.out)
    os.makedirs(out, exist_ok=True)
    begin = time.monotonic()
    bench = Bench(out, options.jobs, begin + options.budget)
    cases, rows, later = load_cases(options.only), {}, []

    def one(case):
        try:
            row = judge(bench, case)
        except Later:
            later.append(case["name"])
            return
        except Unusable as e:
            row = {"name": case["name"], "root": case["root"], "unusable": str(e)}
        except Exception as e:  # of the harness: the other cases go on
            row = {"name": case["name"], "root": case["root"], "unusable": repr(e)}
        with bench.lock:
            rows[case["name"]] = row
            write_rows(out, rows)
        print("%4.0fs %-24s %s" % (time.monotonic() - begin, row["name"], row.get("unusable") or "%(root)s at %(limit_mib)s MiB, %(survives)s" % row), flush=True)

    if not dry:
        with concurrent.futures.ThreadPoolExecutor(len(SETTINGS) + 1) as starters:
            spawners.update(zip(["", *SETTINGS], starters.map(Spawner, ["", *SETTINGS])))
    together, alone = [c for c in cases if not c.get("alone")], [c for c in cases if c.get("alone")]
    with concurrent.futures.ThreadPoolExecutor(len(cases) or 1) as coordinators:
        list(coordinators.map(one, together))
    bench.pool.shutdown()
    bench.pool = concurrent.futures.ThreadPoolExecutor(1)
    for s in spawners.values():
        s.end()
    for case in alone:
        one(case)
    pack_all(out)
    usable = [r for r in rows.values() if "unusable" not in r]
    print("%d runs in %.0f s; %d cases, %d unusable: %s; for a second call: %s"
          % (bench.started, time.monotonic() - begin, len(usable), len(rows) - len(usable), [n for n in sorted(rows) if "unusable" in rows[n]], later), flush=True)


dry, scripts = False, HERE
if __name__ == "__main__":
    main()
