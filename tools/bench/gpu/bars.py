"""The bars as arithmetic, apart from any GPU.

usage: python3 bars.py --selftest
"""
import statistics
import sys

MIB = 1 << 20
GRANULE = 20 * MIB
STEP_RATIO = 1.01
PYTHON_RATIO = 1.0
THREADS_GAIN = 3.0


def tight_limit_mib(peak_active_bytes):
    """A limit just above what the default run has live at its peak."""
    return int(peak_active_bytes / MIB * 1.03) + 24


def same_numbers(first, second, ours):
    """(steps on which both native runs agree, steps of those on which ours differs)."""
    agree = [i for i, (a, b) in enumerate(zip(first, second)) if a == b]
    return len(agree), [i for i in agree if i >= len(ours) or ours[i] != first[i]]


def median_steps(passes):
    """Passes of seconds per step -> the median of each step over the passes."""
    return [statistics.median(step) for step in zip(*passes)]


def step_ratio(ours, native):
    """Passes of ours and of native over the same steps -> (ratio, low, high, total).

    ratio: the median over the steps of the ratio of the steps' median times.
    low, high: the same for single passes of ours, the spread. total: of the sums."""
    mine, theirs = median_steps(ours), median_steps(native)
    ratio = statistics.median(a / b for a, b in zip(mine, theirs))
    single = [statistics.median(a / b for a, b in zip(p, theirs)) for p in ours]
    return ratio, min(single), max(single), sum(mine) / sum(theirs)


def quantile(values, q):
    """The smallest value that at least the share q of the values does not exceed."""
    ordered = sorted(values)
    index = max(0, min(len(ordered) - 1, -(-int(q * 1e6) * len(ordered) // 10**6) - 1))
    return ordered[index]


def slope(points):
    """Least squares slope of (x, y) points."""
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mx) ** 2 for x, _ in points)
    return sum((x - mx) * (y - my) for x, y in points) / spread if spread else 0.0


def soak_plan(peaks_by_stream):
    """Reserved bytes that random sizes may need: what each stream had live at its own peak, a
    quarter more for holes between live blocks, and on each stream two large and two small
    granules that are begun. The engine over the simulated driver needed 1.12 to 1.18 times the
    streams' peaks for the same generator (four seeds, 600,000 allocations each)."""
    return int(sum(p * 1.25 + 2 * GRANULE + 4 * MIB for p in peaks_by_stream))


def selftest():
    assert tight_limit_mib(1000 * MIB) == 1054
    assert same_numbers(["a", "b", "c"], ["a", "x", "c"], ["a", "b", "c"]) == (2, [])
    assert same_numbers(["a", "b", "c"], ["a", "b", "c"], ["a", "z"]) == (3, [1, 2])
    assert same_numbers([], [], []) == (0, [])
    native = [[1.0, 2.0, 4.0], [1.0, 2.0, 4.0], [9.0, 2.0, 4.0]]
    ratio, low, high, total = step_ratio([[1.1, 2.2, 4.4], [1.1, 2.2, 4.4]], native)
    assert abs(ratio - 1.1) < 1e-9 and abs(low - 1.1) < 1e-9 and abs(high - 1.1) < 1e-9 and abs(total - 1.1) < 1e-9
    ratio, low, high, _ = step_ratio([[1.0, 2.0, 4.0], [0.5, 1.0, 2.0], [2.0, 4.0, 8.0]], native)
    assert (ratio, low, high) == (1.0, 0.5, 2.0)
    assert [quantile(range(1, 101), q) for q in (0.5, 0.99, 1.0, 0.0)] == [50, 99, 100, 1]
    assert quantile([7], 0.99) == 7
    assert abs(slope([(0, 1), (1, 3), (2, 5)]) - 2) < 1e-9 and slope([(1, 1), (1, 5)]) == 0
    assert soak_plan([100 * MIB, 0]) == (125 + 44 + 44) * MIB
    print("bars.py: ok")


if __name__ == "__main__":
    if sys.argv[1:] != ["--selftest"]:
        sys.exit(__doc__.strip())
    selftest()
