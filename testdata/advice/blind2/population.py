CASE = {"root": "leak", "cures": ["del", "cpu", "bound"], "fixes": ["del", "cpu", "bound", "half", "micro_batch"], "already": ["no_grad", "detach"]}
# Neuroevolution. A class attribute knows every agent that was ever born.
import copy
import itertools

import torch
import torch.nn as nn

from case import FIX, limit

OBS, ACTIONS, POPULATION, ELITE = 128, 18, 8, 2
DTYPE = torch.bfloat16 if FIX == "half" else torch.float32


class Agent:
    born = {}
    numbers = itertools.count()

    def __init__(self, brain, parent=None):
        self.brain, self.parent = brain, parent
        self.number, self.fitness = next(Agent.numbers), None
        Agent.born[self.number] = self

    def child(self, sigma=0.02):
        brain = copy.deepcopy(self.brain)  # KEPT
        for p in brain.parameters():
            p.add_(torch.randn_like(p), alpha=sigma)
        return Agent(brain, self.number)

    def play(self, episodes):
        score = 0.0
        for obs in episodes.chunk(2 if FIX == "micro_batch" else 1):
            score += self.brain(obs).float().softmax(1).amax(1).sum().item()
        self.fitness = score / len(episodes)


def bury(survivors):
    alive = {a.number for a in survivors}
    if FIX == "del":
        for number in [n for n in Agent.born if n not in alive]:
            del Agent.born[number]
    elif FIX == "cpu":
        for number, agent in Agent.born.items():
            if number not in alive:
                agent.brain.cpu()
    elif FIX == "bound":
        while len(Agent.born) > POPULATION:
            del Agent.born[next(iter(Agent.born))]


@torch.no_grad()
def evolve(generations):
    brain = nn.Sequential(nn.Linear(OBS, 1536), nn.Tanh(), nn.Linear(1536, 1536), nn.Tanh(), nn.Linear(1536, ACTIONS)).cuda().to(DTYPE)
    elite = [Agent(brain)]
    for step in range(generations):
        everyone = elite + [elite[i % len(elite)].child() for i in range(POPULATION - len(elite))]  # KEPT
        episodes = torch.randn(8192, OBS, device="cuda", dtype=DTYPE)
        for agent in everyone:
            agent.play(episodes)
        elite = sorted(everyone, key=lambda a: -a.fitness)[:ELITE]
        bury(elite)
    return elite[0]


def ancestors(agent):
    while agent is not None:
        yield agent.number
        agent = Agent.born.get(agent.parent)


limit()
best = evolve(16)
print("best", best.fitness, "line", list(ancestors(best)))
