# A cache with as many bytes as ever, whose entries grow from generation to
# generation: what the old ones leave is too small for the new. It is ready when
# the cache is full; what it retains is what it has grown since.
import collections
import random
import sys
import time

LIVE = 32 << 20
SIZES = (700, 1100, 1700, 2600, 4000, 6200, 9500, 14500, 22000, 34000)

random.seed(1)
cache, held = collections.deque(), 0


def fill(size, volume):
    global held
    while volume > 0:
        n = random.randrange(size, size * 3 // 2)
        cache.append(bytearray(n))
        held, volume = held + n, volume - n
        while held > LIVE:
            # Old entries go, but not all of them and not in order.
            cache.rotate(-random.randrange(1, 50))
            held -= len(cache.popleft())


fill(SIZES[0], LIVE)
print("ready", flush=True)
sys.stdin.read()
for size in SIZES[1:]:
    fill(size, 2 * LIVE)
print("done", flush=True)
while True:
    time.sleep(3600)
