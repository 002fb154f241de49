"""Bar 6: CUDA graphs keep their memory until they are released."""
import gc
import random
import threading

import torch
import torch.nn as nn

from case import MIB, check

REPLAYS = 1000


class Net(nn.Module):
    """Intermediates of several sizes, small and large pool, whose places are noted."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in ((256, 1024), (1024, 4096), (4096, 64), (64, 256)))
        self.places = []

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
            self.places.append((x.data_ptr(), x.data_ptr() + x.numel() * x.element_size()))
        return x


def warm_up(run):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()


def captured(net, static, **options):
    """(graph, its output, the address ranges of all that the graph computes)."""
    net.places = []
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, **options):
        out = net(static)
    return graph, out, net.places


class Litter:
    """Allocations between replays, filled with rubbish; sizes of the graph's own among them."""

    def __init__(self, places, seed=5):
        self.random = random.Random(seed)
        self.sizes = [end - begin for begin, end in places] + [512, 4096, 3 * MIB, 20 * MIB, 33 * MIB + 7]
        self.places, self.live, self.inside = places, [], 0

    def drop_some(self):
        size = self.random.choice(self.sizes) if self.random.random() < 0.7 else self.random.randrange(1, 8 * MIB)
        x = torch.full((size,), 0xA5, dtype=torch.uint8, device="cuda")
        begin, end = x.data_ptr(), x.data_ptr() + size
        self.inside += any(begin < e and b < end for b, e in self.places)
        self.live.append(x)
        if len(self.live) > 24:
            self.live.pop(self.random.randrange(len(self.live)))


def replay_many(rounds=REPLAYS):
    net = Net().cuda()
    static = torch.randn(512, 256, device="cuda")
    with torch.no_grad():
        warm_up(lambda: net(static))
        inputs = [torch.randn(512, 256, device="cuda") for _ in range(8)]
        eager = [net(x).clone() for x in inputs]
    torch.cuda.synchronize()
    graph, out, places = captured(net, static)
    marker = out.data_ptr()
    litter = Litter(places)
    wrong = torch.zeros((), dtype=torch.int64, device="cuda")
    first = [None] * len(inputs)
    for i in range(rounds):
        k = i % len(inputs)
        static.copy_(inputs[k])
        litter.drop_some()
        graph.replay()
        litter.drop_some()  # before the result is read: its memory must be the graph's alone
        if first[k] is None:
            first[k] = out.clone()
            worst = float((out - eager[k]).abs().max())
            check(worst < 1e-4, f"input {k}: differs from eager by {worst}")
        else:
            wrong += (out != first[k]).sum()
        if i % 250 == 100:
            torch.cuda.empty_cache()
    check(int(wrong) == 0, f"{int(wrong)} numbers differ between replays of the same input")
    check(litter.inside == 0, f"{litter.inside} of {2 * rounds} blocks were given out inside the graph's memory")
    check(out.data_ptr() == marker, "the output moved")
    return {"replays": rounds, "bit_equal_to_eager": sum(bool((a == b).all()) for a, b in zip(first, eager))}


def release():
    """A graph's memory comes back when the graph is gone, and not before."""
    net = Net().cuda()
    static = torch.randn(8192, 256, device="cuda")
    with torch.no_grad():
        warm_up(lambda: net(static))
    captured(net, static)  # cuBLAS gets a workspace for the stream of captures, which stays
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    sizes = []
    for _ in range(3):
        graph, out, _ = captured(net, static)
        graph.replay()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        with_graph = torch.cuda.memory_reserved()
        check(with_graph > before, "a captured graph holds no memory")
        del graph, out
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        sizes.append((with_graph - before, torch.cuda.memory_reserved() - before))
    check(all(after <= 0 for _, after in sizes), f"reserved (with graph, after it) beyond before: {sizes}")
    return {"beyond_before_bytes": sizes}


def release_while_output_lives():
    """The output outlives its graph: its block stays, the rest may go."""
    net = Net().cuda()
    static = torch.randn(512, 256, device="cuda")
    with torch.no_grad():
        warm_up(lambda: net(static))
    graph, out, places = captured(net, static)
    graph.replay()
    torch.cuda.synchronize()
    wanted = out.clone()
    del graph
    gc.collect()
    torch.cuda.empty_cache()
    litter = Litter(places[-1:])
    for _ in range(200):
        litter.drop_some()
    torch.cuda.synchronize()
    check(bool((out == wanted).all()), "the output of a released graph was overwritten while it lived")
    check(litter.inside == 0, "a block was given out inside the living output")
    return {}


def training_step(steps=100):
    """Forward, backward and optimizer in one graph, beside the same in eager mode."""
    def make():
        torch.manual_seed(11)
        model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
        return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    torch.manual_seed(12)
    data = [torch.randn(128, 256, device="cuda") for _ in range(10)]
    model, optimizer = make()
    static = data[0].clone()

    def step(x):
        optimizer.zero_grad(set_to_none=True)
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    warm_up(lambda: step(static))
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step(static)
    litter = Litter([])
    losses = []
    for i in range(steps):
        static.copy_(data[i % len(data)])
        graph.replay()
        litter.drop_some()
        losses.append(loss.item())

    model, optimizer = make()  # step() sees these from here on
    for _ in range(3):
        step(data[0])
    eager = [step(data[i % len(data)]).item() for i in range(steps)]
    worst = max(abs(a - b) for a, b in zip(losses, eager))
    check(worst < 1e-3, f"losses differ by up to {worst}")
    return {"worst": worst, "first": losses[0], "last": losses[-1]}


def graphed_callables(steps=40):
    """torch.cuda.make_graphed_callables on a model that is trained."""
    def make():
        torch.manual_seed(21)
        return nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).cuda()

    plain, graphed = make(), make()
    sample = torch.randn(64, 256, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(graphed, (sample,))
    torch.manual_seed(22)
    data = [torch.randn(64, 256, device="cuda") for _ in range(steps)]
    litter = Litter([])

    def run(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = []
        for x in data:
            x = x.clone().requires_grad_()
            loss = (model(x) - x.detach()).square().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            litter.drop_some()
            optimizer.step()
            losses.append(loss.item())
        return losses

    worst = max(abs(a - b) for a, b in zip(run(graphed), run(plain)))
    check(worst < 1e-4, f"losses differ by up to {worst}")
    return {"worst": worst}


def shared_pool():
    """Two graphs in one pool, replayed in turn; the first is released before the second."""
    net, other = Net().cuda(), Net().cuda()
    static = torch.randn(256, 256, device="cuda")
    with torch.no_grad():
        warm_up(lambda: (net(static), other(static)))
        x = torch.randn(256, 256, device="cuda")
        wanted = other(net(x)).clone()
    one, middle, places = captured(net, static)
    two, out, more = captured(other, middle, pool=one.pool())
    litter = Litter(places + more)
    for _ in range(100):
        static.copy_(x)
        one.replay()
        litter.drop_some()
        two.replay()
        litter.drop_some()
        worst = float((out - wanted).abs().max())
        check(worst < 1e-4, f"differs from eager by {worst}")
    del one
    gc.collect()
    torch.cuda.empty_cache()
    for _ in range(50):
        litter.drop_some()
    check(litter.inside == 0, f"{litter.inside} blocks were given out inside the pool")
    two.replay()
    torch.cuda.synchronize()
    check(float((out - wanted).abs().max()) < 1e-4, "wrong after the other graph was released")
    return {}


def other_thread():
    """Another thread allocates, and makes the allocator grow, while a capture is under way."""
    net = Net().cuda()
    static = torch.randn(512, 256, device="cuda")
    with torch.no_grad():
        warm_up(lambda: net(static))
        wanted = net(static).clone()
    stop, turns, errors = threading.Event(), [0], []

    def allocate():
        try:
            held = []
            while not stop.is_set() and turns[0] < 3000:
                held.append(torch.empty(24 * MIB, dtype=torch.uint8, device="cuda"))
                turns[0] += 1
                if len(held) > 40:
                    held.clear()
        except Exception as e:
            errors.append(f"{type(e).__name__}: {e}")

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        for _ in range(5):
            graph, out, _ = captured(net, static, capture_error_mode="thread_local")
            graph.replay()
            torch.cuda.synchronize()
            check(float((out - wanted).abs().max()) < 1e-4, "the result is wrong")
            del graph, out
    finally:
        stop.set()
        thread.join(30)
    check(not errors, errors[0] if errors else "")
    check(turns[0] > 0, "the other thread did nothing")
    return {"allocations_beside": turns[0]}


def compiled(mode="reduce-overhead"):
    """torch.compile. In mode reduce-overhead torch asks its allocator for checkpoints, which it offers
    to its own allocator alone."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda()
    fast = torch.compile(model, mode=mode)
    x = torch.randn(32, 64, device="cuda")
    with torch.no_grad():
        wanted = model(x)
        for _ in range(5):
            got = fast(x).clone()
    worst = float((got - wanted).abs().max())
    check(worst < 1e-3, f"differs from eager by {worst}")
    return {"worst": worst}
