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


def regression(points):
    """(slope, its standard error) of (x, y) points by least squares; at least three points."""
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mx) ** 2 for x, _ in points)
    slope = sum((x - mx) * (y - my) for x, y in points) / spread
    rest = sum((y - my - slope * (x - mx)) ** 2 for x, y in points)
    return slope, (rest / (n - 2) / spread) ** 0.5


def growth(ours, native):
    """Series of points, one of each for every part of a run, the same length of lists; native may be
    empty -> (slope beyond native's, its standard error): the mean over the parts. Native that
    shrinks is no reason to."""
    total = variance = 0.0
    for i, points in enumerate(ours):
        slope, error = regression(points)
        theirs, their_error = regression(native[i]) if native else (0.0, 0.0)
        total += slope - max(0.0, theirs)
        variance += error ** 2 + their_error ** 2
    return total / len(ours), variance ** 0.5 / len(ours)


def without_jump(points, least):
    """(the points without the largest rise of at least that much between two of them, that rise; 0 if there is none).
    What is left of a second one counts."""
    rises = [b[1] - a[1] for a, b in zip(points, points[1:])]
    rise = max(rises, default=0)
    if rise < least:
        return points, 0
    at = rises.index(rise)
    return [(x, y - rise if i > at else y) for i, (x, y) in enumerate(points)], rise


def flat(slope, error, allowed, blind):
    """Whether a slope is not surely above what is allowed, and was measured well enough to tell."""
    return slope - 2 * error <= allowed and 2 * error <= blind


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
    assert regression([(0, 1), (1, 3), (2, 5)]) == (2, 0)
    slope, error = regression([(0, 0), (1, 3), (2, 0), (3, 3)])
    assert abs(slope - 0.6) < 1e-9 and abs(error - 0.72 ** 0.5) < 1e-9
    rising, level, falling = [(0, 0), (1, 2), (2, 4)], [(0, 5), (1, 5), (2, 5)], [(0, 9), (1, 8), (2, 7)]
    assert growth([rising], []) == (2, 0) and growth([rising], [level]) == (2, 0) and growth([rising], [falling]) == (2, 0)
    assert growth([rising], [rising]) == (0, 0) and growth([rising, level], [level, level]) == (1, 0)
    assert without_jump(rising, 3) == (rising, 0) and without_jump([], 3) == ([], 0)
    assert without_jump([(0, 1), (1, 9), (2, 9)], 3) == ([(0, 1), (1, 1), (2, 1)], 8)
    assert without_jump([(0, 1), (1, 9), (2, 17)], 3) == ([(0, 1), (1, 1), (2, 9)], 8)
    assert flat(0.5, 0, 1, 1) and flat(2, 0.5, 1, 1) and not flat(2.5, 0.5, 1, 1) and not flat(0, 0.6, 1, 1)
    print("bars.py: ok")


if __name__ == "__main__":
    if sys.argv[1:] != ["--selftest"]:
        sys.exit(__doc__.strip())
    selftest()
