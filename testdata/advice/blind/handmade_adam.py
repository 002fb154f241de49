CASE = {"root": "capacity", "cures": ["optimizer", "half"], "fixes": ["optimizer", "half", "cpu", "micro_batch", "checkpoint", "empty_cache"]}
# A mixture density network, written out: weights in a dictionary, and Adam by hand.
import math
import torch
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

limit()
WIDTH, MIX, ROWS = 4096, 20, 256
dtype = torch.bfloat16 if FIX == "half" else torch.float32


def weight(i, o):
    return (torch.randn(o, i, device="cuda", dtype=dtype) / math.sqrt(i)).requires_grad_()


W = {"in": weight(32, WIDTH), "h1": weight(WIDTH, WIDTH), "h2": weight(WIDTH, WIDTH), "h3": weight(WIDTH, WIDTH), "out": weight(WIDTH, 3 * MIX)}
moments = {}


def trunk(x):
    for name in ("in", "h1", "h2", "h3"):
        x = torch.tanh(x @ W[name].T)
    return x


def nll(x, y):
    h = checkpoint(trunk, x, use_reentrant=False) if FIX == "checkpoint" else trunk(x)
    pi, mu, log_sigma = (h @ W["out"].T).float().chunk(3, 1)
    component = -0.5 * ((y - mu) / log_sigma.exp()) ** 2 - log_sigma
    return -torch.logsumexp(pi.log_softmax(1) + component, 1).mean()


@torch.no_grad()
def adam(grads, t, lr=1e-4, b1=0.9, b2=0.999):
    for name, g in grads.items():
        if FIX == "optimizer":
            W[name].sub_(g, alpha=lr)
            continue
        home = "cpu" if FIX == "cpu" else "cuda"
        if name not in moments:
            moments[name] = torch.zeros_like(g, device=home), torch.zeros_like(g, device=home)
        m, v = moments[name]
        g = g.to(home)
        m.mul_(b1).add_(g, alpha=1 - b1)
        v.mul_(b2).addcmul_(g, g, value=1 - b2)
        W[name].addcdiv_((m / (1 - b1**t)).cuda(), ((v / (1 - b2**t)).sqrt() + 1e-8).cuda(), value=-lr)


for step in range(1, 5):
    x, y = torch.randn(ROWS, 32, device="cuda", dtype=dtype), torch.randn(ROWS, 1, device="cuda")
    parts = 2 if FIX == "micro_batch" else 1
    grads = None
    for a, b in zip(x.chunk(parts), y.chunk(parts)):
        new = torch.autograd.grad(nll(a, b) / parts, list(W.values()))
        grads = new if grads is None else [g.add_(n) for g, n in zip(grads, new)]
        del new
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    adam(dict(zip(W, grads)), step)
