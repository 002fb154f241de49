CASE = {"root": "leak", "cures": ["del", "cpu", "bound"], "fixes": ["del", "cpu", "bound", "detach", "half", "micro_batch"]}
# A graph network whose functions are timed by a decorator. It keeps the calls for a table at the end, to show the shapes.
import functools
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

from case import FIX, limit


class Timeline:
    def __init__(self):
        self.calls = deque(maxlen=4 if FIX == "bound" else None)

    @staticmethod
    def note(value):
        if not torch.is_tensor(value):
            return value
        if FIX == "del":
            return tuple(value.shape)
        if FIX == "cpu":
            return value.detach().cpu()
        return value.detach() if FIX == "detach" else value

    def timed(self, function):
        @functools.wraps(function)
        def wrapper(*args):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            result = function(*args)  # KEPT
            stop.record()
            self.calls.append((function.__name__, start, stop, [self.note(a) for a in args], self.note(result)))
            return result
        return wrapper

    def table(self):
        torch.cuda.synchronize()
        for name, start, stop, args, result in self.calls:
            yield name, start.elapsed_time(stop), [tuple(getattr(a, "shape", ())) for a in args]


timeline = Timeline()


@timeline.timed
def send(h, source, target):
    return torch.cat([h[source], h[target]], 1)  # KEPT


@timeline.timed
def gather(messages, target, count):
    return messages.new_zeros(count, messages.shape[1]).index_add(0, target, messages)  # KEPT


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.message, self.update = nn.Linear(2 * d, d), nn.Linear(2 * d, d)

    def forward(self, h, source, target):
        m = F.relu(self.message(send(h, source, target)))  # KEPT
        return F.relu(self.update(torch.cat([h, gather(m, target, len(h)).to(h.dtype)], 1)))  # KEPT


class Net(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.inp, self.layers, self.out = nn.Linear(16, d), nn.ModuleList([Layer(d), Layer(d)]), nn.Linear(d, 1)

    def forward(self, x, source, target):
        h = self.inp(x)
        for layer in self.layers:
            h = layer(h, source, target)  # KEPT
        return self.out(h).squeeze(1)


def graph(nodes=6000, degree=8):
    return torch.randn(nodes, 16, device="cuda"), torch.randint(0, nodes, (nodes * degree,), device="cuda"), torch.arange(nodes, device="cuda").repeat(degree)


def train(model, steps):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps):
        graphs = [graph(3000), graph(3000)] if FIX == "micro_batch" else [graph()]
        opt.zero_grad()
        for x, source, target in graphs:
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                loss = (model(x, source, target).float() - x.sum(1)).square().mean()  # KEPT
            (loss / len(graphs)).backward()
        opt.step()


limit()
train(Net().cuda(), 14)
print(sum(ms for _, ms, _ in timeline.table()), "ms")
