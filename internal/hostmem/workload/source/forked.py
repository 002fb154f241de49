# Four workers forked from one parent, as servers do that load everything first.
# Each has a burst and then nothing to do.
import os
import random
import sys
import time

WORKERS, BUFFERS, KEEP = 4, 12000, 17


def work(seed, done):
    rng = random.Random(seed)
    batch = [bytearray(rng.randrange(600, 12000)) for _ in range(BUFFERS)]
    cache = batch[::KEEP]
    del batch
    os.write(done, b".")
    while cache:
        time.sleep(3600)


read, write = os.pipe()
print("ready", flush=True)
sys.stdin.read()
for n in range(WORKERS):
    if os.fork() == 0:
        work(n, write)
for _ in range(WORKERS):
    os.read(read, 1)
print("done", flush=True)
while True:
    time.sleep(3600)
