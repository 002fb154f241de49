CASE = {"root": "leak", "cures": ["detach", "no_grad"], "fixes": ["detach", "no_grad", "bound", "half", "micro_batch"]}
# A meta-learner after its training: it goes on adapting on a stream of tasks, with the inner loop of the training, which makes graphs of its gradients.
import torch
import torch.nn.functional as F

from case import FIX, limit

WIDTH, ROWS, RATE = 512, 2048, 0.01


def initial():
    sizes = [(WIDTH, 24), (WIDTH, WIDTH), (WIDTH, WIDTH), (1, WIDTH)]
    weights = []
    for o, i in sizes:
        weights += [torch.randn(o, i, device="cuda") / i ** 0.5, torch.zeros(o, device="cuda")]
    return [w.requires_grad_() for w in weights]


def predict(weights, x):
    *hidden, w, b = weights
    for i in range(0, len(hidden), 2):
        x = F.relu(F.linear(x, hidden[i], hidden[i + 1]))  # KEPT
    return F.linear(x, w, b).squeeze(1)


def gradients(weights, x, y):
    parts = 2 if FIX == "micro_batch" else 1
    total = None
    for a, b in zip(x.chunk(parts), y.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = F.mse_loss(predict(weights, a), b) / parts  # KEPT
        grads = torch.autograd.grad(loss, weights, create_graph=FIX != "no_grad")  # KEPT
        total = grads if total is None else [t + g for t, g in zip(total, grads)]
    return total


def adapt(weights, x, y, rounds=2):
    for _ in range(rounds):
        grads = gradients(weights, x, y)  # KEPT
        if FIX == "no_grad":
            with torch.no_grad():
                weights = [w - RATE * g for w, g in zip(weights, grads)]
            weights = [w.requires_grad_() for w in weights]
        else:
            weights = [w - RATE * g for w, g in zip(weights, grads)]  # KEPT
    return weights


def task():
    phase = torch.rand(24, device="cuda") * 6
    x = torch.randn(2 * ROWS, 24, device="cuda")
    y = torch.sin(x + phase).sum(1)
    return x[:ROWS], y[:ROWS], x[ROWS:], y[ROWS:]


def meta_train(steps):
    meta = initial()
    opt = torch.optim.Adam(meta, lr=1e-4)
    for step in range(steps):
        x, y, xq, yq = task()
        opt.zero_grad()
        if FIX == "no_grad":  # the first order is enough
            fast = adapt(meta, x, y)
            grads = torch.autograd.grad(F.mse_loss(predict(fast, xq), yq), fast)
            for w, g in zip(meta, grads):
                w.grad = g
        else:
            F.mse_loss(predict(adapt(meta, x, y), xq), yq).backward()
        opt.step()
    return meta


def follow(weights, tasks):
    errors = []
    for step in range(tasks):
        x, y, xq, yq = task()
        weights = adapt(weights, x, y)  # KEPT
        if FIX == "detach" or FIX == "bound" and step % 3 == 2:
            weights = [w.detach().requires_grad_() for w in weights]
        with torch.no_grad():
            errors.append(F.mse_loss(predict(weights, xq), yq).item())
    return errors


limit()
errors = follow(meta_train(4), 22)
print("error after adaptation", sum(errors) / len(errors))
