# usage: lesson.py work|idle [ROUNDS]
# Batches of buffers of four sizes; a fifth of each batch is held for a while,
# the rest goes at once. To work is to be measured the moment the last batch is
# done: what it holds then is what such a service holds while it works. To be idle
# is to free everything and to be measured afterwards.
import random
import sys
import time

SIZES = (100, 1000, 10000, 100000)
BATCH, HOLD = 500, 100
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 200

random.seed(1)
print("ready", flush=True)
sys.stdin.read()
held = []
for _ in range(rounds):
    batch = [bytearray(random.choice(SIZES)) for _ in range(BATCH)]
    held += batch[:HOLD]
    if len(held) > 1000:
        held = held[-500:]
    del batch
if sys.argv[1] == "idle":
    del held
print("done", flush=True)
while True:
    time.sleep(3600)
