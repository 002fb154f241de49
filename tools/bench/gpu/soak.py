"""Bar 5, the soak: random sizes, streams and threads for minutes; nothing may grow.

usage: python3 tools/bench/gpu/soak.py [--library PATH] [--seconds S] [--threads N] [--no-control]

Threads fill tensors with a number of their own, hold them a while, read them back and drop
them; some they hand to another thread, which reads them on its stream (record_stream). What is
live on each stream is counted as it goes, so the plan is the generator's and not the allocator's:

  reserved   after the warm-up never above bars.soak_plan of the streams' own live peaks,
             and in the last third not above the middle third by more than two granules and 2 %
  host RSS   grows by less than 1 MiB a minute after the warm-up, and by less than 16 MiB in all
  data       not one number differs

Native with expandable segments runs beside it on the same seed, for comparison only.
"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import allocators  # noqa: E402
import bars  # noqa: E402
import children  # noqa: E402
from report import Report, mib, table  # noqa: E402

WARM_UP = 60
MIB = bars.MIB


def thirds(samples, warm_up):
    """(whole, middle, last) of the samples after the warm-up."""
    kept = [s for s in samples if s["at"] >= warm_up]
    if not kept:
        return [], [], []
    begin, end = warm_up, kept[-1]["at"]
    cut, late = begin + (end - begin) / 3, begin + 2 * (end - begin) / 3
    return kept, [s for s in kept if cut <= s["at"] < late], [s for s in kept if s["at"] >= late]


def judge(report, who, samples, final, warm_up, bar):
    def say(what, met, text):
        report.bar(5 if bar else "-", f"soak, {who}: {what}", met if bar else None, text)

    kept, middle, last = thirds(samples, warm_up)
    if not final or not middle or not last:
        say("runs", False, f"too short, or it did not end: nothing to judge; errors: {(final or {}).get('errors') or 'none told'}")
        return
    plan = bars.soak_plan(final["peak_live_by_stream"])
    top = max(s["reserved"] for s in kept)
    say("reserved against the plan", top <= plan,
        f"{mib(top)} MiB, plan {mib(plan)}; live at its peak {mib(final['peak_live'])}, "
        f"the streams' peaks together {mib(sum(final['peak_live_by_stream']))}")
    a, b = max(s["reserved"] for s in middle), max(s["reserved"] for s in last)
    say("reserved does not grow", b <= a * 1.02 + 2 * bars.GRANULE, f"{mib(a)} MiB in the middle third, {mib(b)} in the last")
    slope = bars.slope([(s["at"] / 60, s["rss"]) for s in kept])
    growth = kept[-1]["rss"] - kept[0]["rss"]
    say("host memory does not grow", slope < MIB and growth < 16 * MIB,
        f"{slope / MIB:.3f} MiB a minute, {growth / MIB:.1f} MiB in all, at the end {mib(kept[-1]['rss'])} MiB")
    say("data", final["wrong"] == 0 and not final["errors"],
        f"{final['wrong']} of {final['checked']} tensors wrong; {final['operations']} operations; errors: {final['errors'][:3] or 'none'}")
    say("afterwards", final["allocated_after"] == final["allocated_before"],
        f"{final['allocated_before']} bytes allocated before the first thread, {final['allocated_after']} after the last; "
        f"reserved after empty_cache {mib(final['reserved_after'])} MiB; {final['ooms']} errors provoked")


def one(worker):
    """gather() raises where one worker alone is asked."""
    try:
        return [worker.receive(60)]
    except children.Failed as e:
        return [e]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", dest="so", help="libashlar.so (default: ASHLAR_LIBRARY, then bin/gpu/libashlar.so)")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--warm-up", type=float, default=WARM_UP)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--live-mib", type=int, default=1024, help="what a thread holds at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-control", action="store_true")
    args = parser.parse_args()
    if args.so:
        os.environ["ASHLAR_LIBRARY"] = args.so
    allocators.clean_environment()
    os.environ.update(OMP_NUM_THREADS="1")
    report = Report("soak", args.seconds + 90)
    names = ["ashlar"] + ([] if args.no_control else ["expandable"])
    samples, final, workers = {n: [] for n in names}, {n: None for n in names}, {}
    for name in names:
        fields = {"allocator": name, "seconds": args.seconds, "threads": args.threads, "live": args.live_mib * MIB, "seed": args.seed}
        workers[name] = children.Worker("soak_worker", "soak", fields, None, False)
    told = time.monotonic()
    while workers:
        open_ = list(workers)
        # A worker tells every two seconds how it is; silence is a hang.
        answers = children.gather([workers[n] for n in open_], 60) if len(open_) > 1 else one(workers[open_[0]])
        for name, answer in zip(open_, answers):
            if isinstance(answer, children.Failed):
                report.bar(5 if name == "ashlar" else "-", f"soak, {name}: runs", False if name == "ashlar" else None, str(answer))
                del workers[name]
            elif "final" in answer:
                final[name] = answer["final"]
                report.line("final", allocator=name, **answer["final"])
                workers.pop(name).stop()
            else:
                samples[name].append(answer)
                report.line("sample", allocator=name, **answer)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            for name in names:
                if samples[name]:
                    s = samples[name][-1]
                    report.note(f"{name}: {s['at']:.0f} s, reserved {mib(s['reserved'])} MiB, live {mib(s['live'])}, "
                                f"RSS {mib(s['rss'])}, {s['operations']} operations")
    print("\nMiB by minute")
    table(["allocator", "minute", "reserved", "live", "host RSS", "operations"],
          [[n, f"{s['at'] / 60:.0f}", mib(s["reserved"]), mib(s["live"]), mib(s["rss"]), s["operations"]]
           for n in names for s in samples[n][::30]])
    for name in names:
        judge(report, name, samples[name], final[name], args.warm_up, name == "ashlar")
    sys.exit(report.close())


if __name__ == "__main__":
    main()
