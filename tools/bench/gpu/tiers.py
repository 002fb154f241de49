"""Tiers on a real GPU: park, restore and overflow, part by part (docs/tiers.md).

usage: python3 tools/bench/gpu/tiers.py [--library PATH] [--budget S] [--only PART,...] [--conf TEXT] [--beside]
       python3 tools/bench/gpu/tiers.py --predicted DIR --ashlar PATH

  park      20 GiB parked and restored, 20 rounds: GB/s, contents, what nvidia-smi and a second
            process see; beside model.to("cpu"). With a graph and an optimizer: about a minute
  faults    a move beside a capture, host memory refused, device full, exceptions, a killed process
  overflow  four workloads under 0.9, 0.95, 0.8 and 0.7 of their live peak: PyTorch's own dies, ours
            ends with the same losses; slowdowns, beside save_on_cpu, which is timed at the first share.
            Leaves a recording of each in $OUT for --predicted
  rlhf      two models of 1.5 B parameters take turns on a device that holds one, ten rounds
  rounds    1,000 rounds of 1 GiB: nothing grows
  off       what tiers cost while they are not used

--predicted compares the slowdowns in DIR, which a run had as $OUT, with those that `ashlar whatif --overflow`
predicts from the recordings there; no GPU is needed.

A part that finds no time left is named. Every process has a time limit, lines go to
tiers.jsonl in $OUT. Exit status: 0 if every bar was met, 1 if not, 2 if the call was wrong.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import allocators  # noqa: E402
import children  # noqa: E402
from report import Report, short, table  # noqa: E402

GB, GIB, MIB = 1e9, 1 << 30, 1 << 20
BUS = 51e9  # bytes a second, both ways
SPEED = 40e9
WORKLOADS = ("gpt2_fixed", "resnet_batches", "llama_ckpt", "moe_train")
SHARES = (0.9, 0.95, 0.8, 0.7)
OVERFLOW = "overflow:48GiB"


class Case:
    """A process of tiers_worker, with its answers."""

    def __init__(self, args, function, **fields):
        self.worker = children.Worker("tiers_worker", function, fields, None, args.fork)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.worker.stop(patience=10)

    def answer(self, seconds):
        return self.worker.receive(seconds)

    def answers(self, seconds, last="done"):
        """All answers up to the one that has the key last."""
        deadline, rows = time.monotonic() + seconds, []
        while not rows or last not in rows[-1]:
            rows.append(self.worker.receive(max(1.0, deadline - time.monotonic())))
        return rows


def ask(args, report, part, patience, function, **fields):
    """One answer of one process; None and a bar that is not met if there is none."""
    try:
        with Case(args, function, **fields) as case:
            answer = case.answer(min(patience, max(5.0, report.left())))
    except children.Failed as e:
        report.bar(part, function, False, short(e))
        return None
    report.line(function, **fields, answer=answer)
    return answer


def rate(bytes_, seconds):
    return "%.1f GB/s" % (bytes_ / seconds / GB) if seconds else "-"


def park(args, report):
    rows = []
    try:
        with Case(args, "park_rounds", gib=args.gib, rounds=args.rounds, other=True) as case:
            rows = case.answers(min(180, report.left()))
    except children.Failed as e:
        report.bar("3", "park", False, short(e))
        return
    for row in rows:
        report.line("park", **row)
    first = next(r for r in rows if r.get("round") == 0)
    warm = [r for r in rows if r.get("round", 0) > 0]
    bytes_ = args.gib * GIB
    out = statistics.median(bytes_ / r["park_s"] for r in warm)
    back = statistics.median(bytes_ / r["restore_s"] for r in warm)
    report.bar("3", "park %d GiB" % args.gib, out >= SPEED, "%.1f GB/s out (first %s, with making host pages), %d rounds" % (
        out / GB, rate(bytes_, first["park_s"]), len(warm)))
    report.bar("3", "restore %d GiB" % args.gib, back >= SPEED, "%.1f GB/s back (first %s)" % (back / GB, rate(bytes_, first["restore_s"])))
    report.bar("3", "device memory is free", first["free_gain"] >= 0.995 * bytes_ and first["freed"] >= bytes_,  # page tables may take the rest
               "driver %+.2f GiB, nvidia-smi %s GiB, park said %.2f GiB" % (
                   first["free_gain"] / GIB, "-" if first["smi_gain"] is None else "%+.2f" % (first["smi_gain"] / GIB), first["freed"] / GIB))
    report.bar("3", "a second process uses it", first.get("other") is True, "90 %% of what was freed: %s" % first.get("other"))
    report.bar("3", "contents and addresses", all(r["same"] for r in rows if "same" in r) and first["touched"],
               "bit by bit after the first and the last round; read while parked in %.0f ms" % (1e3 * first["touch_s"]))
    graph = ask(args, report, "3", 60, "graph", rounds=10)
    if graph:
        report.bar("3", "CUDA graph replays", graph["same"] and graph["same_parked"], "%d rounds, also while parked; its own memory: %s" % (
            graph["rounds"], short(graph.get("refused", "parked %s bytes" % graph.get("private")), 120)))
    opt = ask(args, report, "3", 60, "optimizer")
    if opt:
        freed = opt["freed"][-1]
        report.bar("3", "park(optimizer), park(module)", opt["same"] and freed[0] >= 0.9 * opt["state"], "same losses; freed %d of %d MiB of state, %d of %d MiB of weights" % (
            freed[0] / MIB, opt["state"] / MIB, freed[1] / MIB, opt["weights"] / MIB))
    few = min(args.gib, 4)  # it takes its time
    plain = ask(args, report, "3", 120, "to_cpu", gib=few)
    if plain:
        seconds = plain["seconds"][-1]
        report.bar("3", 'model.to("cpu"), .to("cuda")', None, "%s out, %s back; same addresses: %s, views follow: %s" % (
            rate(few * GIB, seconds[0]), rate(few * GIB, seconds[1]), plain["same_addresses"], plain["views_follow"]))


def faults(args, report):
    answer = ask(args, report, "5", 60, "capture")
    if answer:
        refused = len(answer["refused"]) == 2 and all("captur" in text for text in answer["refused"])
        report.bar("5", "beside a capture", refused and answer["replayed"] and answer["kept"] and answer["freed"] > 0, short(answer["refused"][:1], 160))
    answer = ask(args, report, "5", 120, "refusals")
    if answer:
        report.bar("5", "host memory refused", answer["host_kept"] and "parked" != answer["host"][:6], short(answer["host"], 160))
        report.bar("5", "device full at restore", answer["full_kept"] and answer["full"] != "restored", short(answer["full"], 160))
        report.bar("5", "exception in a region", answer["exception"], "contents kept, later allocations outside")
        report.bar("5", "dropped", answer["dropped"] and "keep" in answer["drop_enter"] + answer["drop_use"] and answer["usable"] and answer["dropped_freed"] > 0,
                   short("%s; %s" % (answer["drop_enter"], answer["drop_use"]), 200))
    killed(args, report)


def killed(args, report):
    """A process that is killed in the middle of moves leaves nothing behind."""
    import tiers_worker

    before, rows = tiers_worker.smi_free(), []
    for n in range(3):
        try:
            case = Case(args, "forever", gib=4)
            case.answer(60)
        except children.Failed as e:
            report.bar("5", "killed", False, short(e))
            return
        time.sleep(1.0 + 0.37 * n)
        os.kill(case.worker.pid, signal.SIGKILL)
        case.worker.wait()
        case.worker.stop(patience=0)
        time.sleep(2)
        rows.append(tiers_worker.smi_free())
    report.line("killed", before=before, after=rows)
    lost = None if None in (before, *rows) else max(before - r for r in rows)
    report.bar("5", "killed while memory moves", None if lost is None else lost <= 64 * MIB, "3 times; %s of device memory lost by nvidia-smi" % (
        "unknown" if lost is None else "%d MiB" % (lost / MIB)))


def run(args, report, seconds, **fields):
    return side_by_side(args, report, seconds, [fields])[0]


def side_by_side(args, report, seconds, runs):
    """The answers of processes that run at the same time."""
    cases, answers = [Case(args, "overflow", **fields) for fields in runs], []
    for case, fields in zip(cases, runs):
        try:
            with case:
                answer = case.answer(min(seconds, max(5.0, report.left())))
        except children.Failed as e:
            answer = {"failed": short(e)}
        report.line("overflow", **fields, answer=answer)
        answers.append(answer)
    return answers


def outcome(answer):
    """In a word, for the table."""
    if "failed" in answer:
        return "failed: " + short(answer["failed"], 80)
    return "dies" if answer["oom"] else "ends"


def overflow(args, report):
    os.environ["COMPARE_SDP"] = "math"  # the same bits each time
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    rows = []
    for name in args.workloads:
        free = run(args, report, 120, name=name, allocator="ashlar", conf="", limit=0, save_on_cpu=False)
        if "failed" in free or free["oom"]:
            report.bar("1", name, False, "without a limit: " + outcome(free))
            continue
        recording = os.path.join(os.path.dirname(os.path.abspath(report.path)), name + ".pickle")
        repeat = run(args, report, 120, name=name, allocator="native", conf=None, limit=0, save_on_cpu=False, record=recording)
        agrees = repeat.get("numbers") == free["numbers"]
        peak = free["stats"]["active_bytes.all.peak"]
        step = statistics.mean(free["seconds"])
        others = [(kind, share) for share in args.shares for kind in ("native", "expandable", "save_on_cpu")]
        ends = dict(zip(others, side_by_side(args, report, 120, [
            {"name": name, "allocator": "expandable" if kind == "save_on_cpu" else kind, "conf": None, "limit": int(share * peak), "save_on_cpu": kind == "save_on_cpu"}
            for kind, share in others])))
        saved = None  # slowdown of save_on_cpu, for which the limit does not matter
        timed = run(args, report, 120, name=name, allocator="expandable", conf=None, limit=int(args.shares[0] * peak), save_on_cpu=True)
        if outcome(timed) == "ends":
            saved = statistics.mean(timed["seconds"]) / step
        for share in args.shares:
            if report.left() < 15:
                report.bar("1", "%s at %.2f" % (name, share), None, "no time left")
                continue
            own = {kind: ends[kind, share] for kind in ("native", "expandable")}
            other = saved if outcome(ends["save_on_cpu", share]) == "ends" else None
            rows.append(limited(args, report, name, share, int(share * peak), peak, step, free, agrees, own, other))
    if rows:
        print()
        table(["workload", "limit", "native", "expandable", "ours", "same losses", "slowdown", "bound", "save_on_cpu", "on the host", "moves"], rows)


def limited(args, report, name, share, limit, peak, step, free, agrees, own, other):
    """One workload under one limit: a row."""
    ours = run(args, report, 180, name=name, allocator="ashlar", conf=OVERFLOW, limit=limit, save_on_cpu=False)
    ended = "failed" not in ours and not ours["oom"]
    same = ended and ours["numbers"] == free["numbers"] and ours["again"] == free["again"]
    slow = statistics.mean(ours["seconds"]) / step if ended else None
    bound = 1.5 * (1 + 2 * (peak - limit) / (BUS * step))
    die = all(outcome(a) == "dies" for a in own.values())
    met = ended and same and (slow <= bound or share != 0.9) and (other is None or slow <= other)
    text = "%s; native %s, expandable %s; %s" % (
        outcome(ours) if not ended else "slowdown %.2f (bound %.2f), save_on_cpu %s" % (slow, bound, "dies" if other is None else "%.2f" % other),
        outcome(own["native"]), outcome(own["expandable"]), "same losses" if same else "OTHER LOSSES")
    if not agrees:
        text += "; native alone has other losses"
    report.bar("1", "%s at %.2f" % (name, share), met if die else None, text)
    stats = ours.get("stats") or {}
    return [name, "%.2f" % share, outcome(own["native"]), outcome(own["expandable"]), outcome(ours), "yes" if same else "no",
            "-" if slow is None else "%.2f" % slow, "%.2f" % bound, "dies" if other is None else "%.2f" % other,
            "%.2f GiB" % ((stats.get("ashlar.host_bytes") or 0) / GIB), stats.get("ashlar.moves")]


def predicted(folder, ashlar):
    """Compares the slowdowns of a run with those that its recordings predict."""
    with open(os.path.join(folder, "tiers.jsonl")) as f:
        runs = [r for r in map(json.loads, f) if r["kind"] == "overflow" and r["allocator"] == "ashlar" and r["answer"].get("seconds")]
    free = {r["name"]: statistics.mean(r["answer"]["seconds"]) for r in runs if not r["limit"]}
    rows, inside = [], 0
    for r in runs:
        if not r["limit"] or r["answer"]["oom"]:
            continue
        recording = next(p for p in (os.path.join(folder, r["name"] + end) for end in (".pickle", ".pickle.gz")) if os.path.exists(p))
        out = subprocess.run([ashlar, "whatif", recording, "--overflow", OVERFLOW.split(":")[1], "--limit", str(r["limit"]), "--json"], stdout=subprocess.PIPE, check=True)
        said = json.loads(out.stdout)["overflow"]
        step = free[r["name"]]
        slow = statistics.mean(r["answer"]["seconds"]) / step
        low, high = (1 + said["extra_seconds"][k] / step for k in ("low", "high"))
        good = low <= slow <= high <= 2 * low
        inside += good
        rows.append([r["name"], "%.2f GiB" % (r["limit"] / GIB), "%.2f" % slow, "%.2f to %.2f" % (low, high), "%.2f to %.2f" % tuple(said["slowdown"].values()), "yes" if good else "no"])
    table(["workload", "limit", "measured", "predicted for its steps", "for the recorded steps", "inside"], rows)
    print("\n%d of %d inside, with an upper end of at most twice the lower" % (inside, len(rows)))
    return 0 if inside >= 0.75 * len(rows) else 1


def rlhf(args, report):
    try:
        with Case(args, "rlhf", layers=31, rounds=10, share=1.1) as case:
            rows = case.answers(min(240, report.left()))
    except children.Failed as e:
        report.bar("6", "rlhf", False, short(e))
        return
    for row in rows:
        report.line("rlhf", **row)
    rounds = [r for r in rows if "round" in r]
    warm = rounds[1:]
    about = rows[0]
    report.bar("6", "two models in turns", len(rounds) == 10 and all(r.get("same", True) for r in rounds),
               "%.2f B parameters each, limit %.1f GiB; a switch takes %.2f s to the actor, %.2f s to the judge; a step %.2f s, a judgement %.2f s" % (
                   about["parameters"] / 1e9, about["limit"] / GIB, *(statistics.median(r[k] for r in warm) for k in ("to_actor_s", "to_judge_s", "train_s", "judge_s"))))


def rounds(args, report):
    answer = ask(args, report, "3", 200, "small_rounds", rounds=1000, seconds=min(150.0, max(10.0, report.left() - 20)))
    if answer:
        lost = {k: answer["before"][k] - answer["after"][k] for k in ("free", "available")}
        grown = {k: answer["after"][k] - answer["before"][k] for k in ("rss", "reserved")}
        met = answer["same"] and (args.beside or lost["free"] <= 0) and grown["rss"] <= 64 * MIB and grown["reserved"] <= 0 and answer["rounds"] == 1000
        report.bar("3", "1,000 rounds of 1 GiB", met, "%d rounds in %.0f s; device %+d MiB, RSS %+d MiB, host available %+d MiB" % (
            answer["rounds"], answer["seconds"], -lost["free"] / MIB, grown["rss"] / MIB, -lost["available"] / MIB))


def off(args, report):
    """In turns, so that a slow moment hits all. Of each process the fastest sample counts: processes
    differ by more than what is measured, and what is added by others is never less than nothing."""
    kinds = {"off": ("tiers:False", False), "on": ("", False), "unused": (OVERFLOW, True)}
    ns, steps = {k: [] for k in kinds}, {k: [] for k in kinds}
    for turn in range(3):
        for kind in (kinds if turn % 2 == 0 else reversed(kinds)):
            conf, unused = kinds[kind]
            answer = ask(args, report, "4", 60, "idle_cost", conf=conf, unused=unused, samples=15, n=1000)
            if answer is None:
                return
            ns[kind].append(answer["ns"])
            steps[kind] += answer["steps"][1:]
    for kind in ("on", "unused"):
        ratios = [statistics.median(min(a[size]) / min(b[size]) for a, b in zip(ns[kind], ns["off"])) for size in ns["off"][0]]
        report.bar("4", "torch.empty and del, tiers " + kind, max(ratios) <= 1.02, "%s of the time with tiers:False" % ", ".join("%.3f" % r for r in ratios))
        report.bar("4", "step time, tiers " + kind, None, "%.3f" % (statistics.median(steps[kind]) / statistics.median(steps["off"])))


PARTS = {"park": park, "faults": faults, "overflow": overflow, "rlhf": rlhf, "rounds": rounds, "off": off}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library")
    parser.add_argument("--budget", type=float, default=560, help="seconds for everything")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas: " + ", ".join(PARTS))
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="of overflow")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), help="of overflow")
    parser.add_argument("--gib", type=int, default=20, help="of park")
    parser.add_argument("--rounds", type=int, default=20, help="of park")
    parser.add_argument("--conf", default="", help="settings of the library in parts that set none, such as region_page:20MiB")
    parser.add_argument("--beside", action="store_true", help="others use the device too: rounds does not judge what is free there")
    parser.add_argument("--predicted", metavar="DIR", help="compare a run that was made before with what the command predicts")
    parser.add_argument("--ashlar", default="bin/ashlar", help="the command")
    parser.add_argument("--no-fork", dest="fork", action="store_false", help="a fresh process for each case")
    args = parser.parse_args()
    if args.predicted:
        return predicted(args.predicted, args.ashlar)
    wanted = [p for p in args.only.split(",") if p]
    if any(p not in PARTS for p in wanted):
        print("tiers.py: the parts are " + ", ".join(PARTS), file=sys.stderr)
        return 2
    args.workloads = [w for w in args.workloads.split(",") if w]
    args.shares = [float(s) for s in args.shares.split(",") if s]
    if args.library:
        os.environ["ASHLAR_LIBRARY"] = args.library
    allocators.clean_environment()
    if args.conf:
        os.environ["ASHLAR_CONF"] = args.conf
    if not os.path.exists(allocators.library_path()):
        print("tiers.py: there is no library at %s (README.md)" % allocators.library_path(), file=sys.stderr)
        return 2
    report = Report("tiers", args.budget)
    if args.fork:
        import torch  # noqa: F401

        import tiers_worker  # noqa: F401

        if {"overflow", "rlhf", "off"} & set(wanted):
            import workloads

            workloads.preload()
        args.fork = not torch.cuda.is_initialized()
    for name in PARTS:
        if name not in wanted:
            continue
        if report.left() < 20:
            report.bar("-", name, None, "no time left")
            continue
        report.note(name)
        PARTS[name](args, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
