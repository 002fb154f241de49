# Sixteen threads, each with batches of buffers of its own; one of each batch is
# kept. The threads end, and nothing happens any more.
import random
import sys
import threading
import time

THREADS, ROUNDS, BUFFERS = 16, 12, 400

kept = []


def work(seed):
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        batch = [bytearray(rng.randrange(600, 60000)) for _ in range(BUFFERS)]
        kept.append(batch[rng.randrange(BUFFERS)])


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
