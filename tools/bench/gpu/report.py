"""Tables on stdout, JSON lines in a file, and whether the bars were met."""
import json
import os
import sys
import time

MIB = 1 << 20


def mib(n):
    return "-" if n is None else f"{n / MIB:,.0f}"


def short(text, limit=300):
    """Text on one line; too long a one loses its middle, since the end of an error says most."""
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[:limit // 3] + " ... " + text[-(limit - limit // 3):]


def table(head, rows):
    """A table in Markdown, so that it can go into a page as it is."""
    cells = [[short(c) for c in row] for row in [head, *rows]]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    width[-1] = len(head[-1])  # the last column is free text
    for n, row in enumerate(cells):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, width)) + " |")
        if n == 0:
            print("|" + "|".join("-" * (w + 2) for w in width) + "|")
    sys.stdout.flush()


class Report:
    """What one script found. Lines go to NAME.jsonl in $OUT (or here) as they come."""

    def __init__(self, name, budget_s):
        self.began = time.monotonic()
        self.deadline = self.began + budget_s
        folder = os.environ.get("OUT") or "."
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, name + ".jsonl")
        open(self.path, "w").close()
        self.verdicts = []

    def left(self):
        """Seconds of the budget that are left."""
        return self.deadline - time.monotonic()

    def note(self, text):
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)

    def line(self, kind, **fields):
        with open(self.path, "a") as f:
            f.write(json.dumps({"kind": kind, **fields}) + "\n")

    def bar(self, number, case, met, text):
        """A bar: met is True, False, or None for a figure that is shown but is no bar."""
        self.verdicts.append((number, case, met, text))
        self.line("bar", bar=number, case=case, met=met, text=text)

    def close(self):
        """Prints the verdicts; the exit status."""
        print()
        word = {True: "met", False: "NOT MET", None: "shown"}
        table(["bar", "case", "verdict", "figures"], [(n, c, word[m], t) for n, c, m, t in self.verdicts])
        bad = [v for v in self.verdicts if v[2] is False]
        met = [v for v in self.verdicts if v[2] is True]
        print(f"\n{len(met)} met, {len(bad)} not met; {time.monotonic() - self.began:.0f} s; lines in {self.path}", flush=True)
        # Nothing met and nothing missed means that nothing was measured.
        return 1 if bad or not met else 0
