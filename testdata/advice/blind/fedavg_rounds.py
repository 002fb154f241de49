CASE = {"root": "leak", "cures": ["del", "cpu", "bound"], "fixes": ["del", "cpu", "bound", "half", "detach", "micro_batch"]}
# Federated averaging: the clients' models of all rounds stay in the log.
import copy
import torch
from torch import nn
from torch.nn import functional as F
from case import FIX, limit


class Server:
    def __init__(self, net):
        self.net, self.log = net, {}

    def broadcast(self):
        return copy.deepcopy(self.net)  # KEPT

    @torch.no_grad()
    def average(self, clients):
        for mine, *theirs in zip(self.net.parameters(), *(c.parameters() for c in clients)):
            mine.copy_(sum(theirs) / len(theirs))

    def note(self, number, clients):
        if FIX == "del":
            return
        if FIX == "cpu":
            clients = [{k: v.detach().cpu() for k, v in c.state_dict().items()} for c in clients]
        elif FIX == "detach":
            clients = [{k: v.detach() for k, v in c.state_dict().items()} for c in clients]
        elif FIX == "half":
            clients = [c.half() for c in clients]
        self.log[number] = clients
        if FIX == "bound":
            self.log.pop(number - 1, None)


def local_training(net, batches):
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for x, y in batches:
        opt.zero_grad()
        n = 2 if FIX == "micro_batch" else 1
        for xs, ys in zip(x.chunk(n), y.chunk(n)):
            (F.cross_entropy(net(xs), ys) / n).backward()  # KEPT
        opt.step()


def shard():
    for _ in range(2):
        yield torch.randn(64, 784, device="cuda"), torch.randint(0, 62, (64,), device="cuda")


limit()
server = Server(nn.Sequential(nn.Linear(784, 2560), nn.ReLU(), nn.Linear(2560, 2560), nn.ReLU(), nn.Linear(2560, 62)).cuda())
for step in range(9):
    clients = []
    for _ in range(4):
        net = server.broadcast()  # KEPT
        local_training(net, shard())  # KEPT
        clients.append(net)
    server.average(clients)
    server.note(step, clients)
