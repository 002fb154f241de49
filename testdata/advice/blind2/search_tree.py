CASE = {"root": "leak", "cures": ["del", "bound", "cpu"], "fixes": ["del", "bound", "cpu", "half", "micro_batch", "empty_cache"], "already": ["no_grad", "detach"]}
# Tree search with a learned model of the game. Nodes know their parents, and the garbage collector is off, for its pauses.
import gc
import random

import torch
from torch import nn
import torch.nn.functional as F

from case import FIX, limit

gc.disable()
CHANNELS, GAMES, SIMULATIONS, MOVES = 64, 384, 16, 9
DTYPE = torch.float16 if FIX == "half" else torch.float32


class Node:
    def __init__(self, state, parent=None):
        self.state, self.parent = state, parent
        self.children, self.visits = [], 0

    def expand(self, state):
        child = Node(state, self)
        self.children.append(child)
        return child


class World(nn.Module):
    def __init__(self):
        super().__init__()
        self.represent = nn.Conv2d(8, CHANNELS, 3, padding=1)
        self.dynamics = nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU(), nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1))
        self.value = nn.Linear(CHANNELS, 1)

    def advance(self, state):
        return state + self.dynamics(state)  # KEPT

    def judge(self, state):
        return self.value(state.mean((2, 3))).squeeze(1)


@torch.no_grad()
def search(world, board, rng):
    root = Node(world.represent(board))
    for _ in range(SIMULATIONS):
        node = root
        while node.children and rng.random() < 0.7:
            node = min(node.children, key=lambda c: c.visits)
        state = world.advance(node.state.cuda())  # KEPT
        world.judge(state)
        node = node.expand(state.cpu() if FIX == "cpu" else state)
        while node is not None:
            node.visits += 1
            node = node.parent
    return root


def take_apart(root):
    nodes = [root]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        node.parent, node.children = None, []


def learn(world, opt, board, outcome):
    value = world.judge(world.advance(world.represent(board[:64]))).float()
    opt.zero_grad()
    F.mse_loss(value, torch.full_like(value, outcome)).backward()
    opt.step()


def play(world, opt, rng):
    for step in range(MOVES):
        boards = torch.randn(GAMES, 8, 10, 10, device="cuda", dtype=DTYPE)
        for board in boards.chunk(2 if FIX == "micro_batch" else 1):
            root = search(world, board, rng)  # KEPT
            learn(world, opt, board, max(c.visits for c in root.children) / root.visits)
            if FIX == "del":
                take_apart(root)
        if FIX == "bound":
            del root
            gc.collect()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()


limit()
world = World().cuda().to(DTYPE)
play(world, torch.optim.SGD(world.parameters(), lr=1e-3), random.Random(4))
