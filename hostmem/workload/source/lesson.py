# Batches of buffers of four sizes; a fifth of each batch is held for a while,
# the rest goes at once. It never pauses: what it holds at the end is what such
# a service holds while it works.
import os
import random
import sys

SIZES = (100, 1000, 10000, 100000)
ROUNDS, BATCH, HOLD = 200, 500, 100

random.seed(1)
print("ready", flush=True)
sys.stdin.read()
held = []
for _ in range(ROUNDS):
    batch = [bytearray(random.choice(SIZES)) for _ in range(BATCH)]
    held += batch[:HOLD]
    if len(held) > 1000:
        held = held[-500:]
    del batch
os._exit(0)  # without taking everything apart first
