# A burst of requests, each with buffers of some kilobytes; one buffer in many
# outlives it, as an entry of a cache does. Then nothing happens any more.
import random
import sys
import time

ROUNDS, BUFFERS, KEEP = 4, 40000, 17

random.seed(1)
print("ready", flush=True)
sys.stdin.read()
for _ in range(ROUNDS):
    work = [bytearray(random.randrange(600, 12000)) for _ in range(BUFFERS)]
    cache = work[::KEEP]
    del work
print("done", flush=True)
while True:
    time.sleep(3600)
