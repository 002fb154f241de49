# Sixteen threads, each with batches of buffers of its own, all at the same time;
# one buffer of each batch is kept. The threads end, and nothing happens any more.
import random
import sys
import threading
import time

THREADS, ROUNDS, BUFFERS = 16, 4, 400

kept = []
full = threading.Barrier(THREADS)


def work(seed):
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        batch = [bytearray(rng.randrange(600, 60000)) for _ in range(BUFFERS)]
        full.wait()
        kept.append(batch[rng.randrange(BUFFERS)])
        del batch


print("ready", flush=True)
sys.stdin.read()
threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("done", flush=True)
while True:
    time.sleep(3600)
