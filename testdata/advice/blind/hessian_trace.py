CASE = {"root": "leak", "cures": ["detach", "cpu", "no_grad"], "fixes": ["detach", "cpu", "no_grad", "del", "bound", "half", "micro_batch"]}
# Hutchinson's estimate of the Hessian's trace, logged at every step with everything it was computed from.
import contextlib
import torch
from torch.autograd import grad
from case import FIX, limit

limit()
WIDTH, ROWS = 1024, 1024
dtype = torch.bfloat16 if FIX == "half" else torch.float32
layers = [torch.nn.Linear(64, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1)]
net = torch.nn.Sequential(*layers).to("cuda", dtype)
weights = list(net.parameters())
trace_log = []


def estimate(x, y):
    loss = (net(x) - y).square().mean()  # KEPT
    gs = grad(loss, weights, create_graph=True)  # KEPT
    signs = [torch.randint_like(w, 2) * 2 - 1 for w in weights]  # KEPT
    dot = sum((g * s).sum() for g, s in zip(gs, signs))  # KEPT
    hs = grad(dot, weights, create_graph=True)  # KEPT
    with torch.no_grad() if FIX == "no_grad" else contextlib.nullcontext():
        trace = sum((h * s).sum() for h, s in zip(hs, signs))  # KEPT
    return [g.detach() for g in gs], trace


for step in range(14):
    x, y = torch.randn(ROWS, 64, device="cuda", dtype=dtype), torch.randn(ROWS, 1, device="cuda", dtype=dtype)
    parts = 2 if FIX == "micro_batch" else 1
    for xs, ys in zip(x.chunk(parts), y.chunk(parts)):
        gs, trace = estimate(xs, ys)  # KEPT
        if FIX == "detach":
            trace = trace.detach()
        elif FIX == "cpu":
            trace = trace.detach().cpu()
        if FIX != "del":
            trace_log.append(trace)
        if FIX == "bound":
            del trace_log[:-2]
        with torch.no_grad():
            for w, g in zip(weights, gs):
                w -= 0.01 / parts * g
