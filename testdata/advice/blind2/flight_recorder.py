CASE = {"root": "leak", "cures": ["del", "cpu", "bound"], "fixes": ["del", "cpu", "bound", "detach", "half", "micro_batch"]}
# Speech enhancement. Debug messages wait in a MemoryHandler until there is an error, with their arguments.
import logging
import logging.handlers
import os

import torch
from torch import nn
import torch.nn.functional as F

from case import FIX, limit

BINS = 257


def make_logger():
    logger = logging.getLogger("enhance")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    target = logging.StreamHandler(open(os.devnull, "w"))
    logger.addHandler(logging.handlers.MemoryHandler(4 if FIX == "bound" else 20000, logging.ERROR, target, flushOnClose=False))
    return logger


class Enhancer(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.front = nn.Conv1d(BINS, width, 5, padding=2)
        self.deep = nn.Conv1d(width, width, 5, padding=4, dilation=2)
        self.out = nn.Conv1d(width, BINS, 1)

    def forward(self, spectrogram):
        h = F.relu(self.front(spectrogram))
        h = h + F.relu(self.deep(h))
        return self.out(h).sigmoid()  # KEPT


class Trainer:
    def __init__(self, model, logger):
        self.model, self.logger = model, logger
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3)

    def note(self, step, mask):
        if FIX == "del":
            mask = mask.mean().item()
        elif FIX == "cpu":
            mask = mask.detach().cpu()
        elif FIX == "detach":
            mask = mask.detach()
        self.logger.debug("step %d, mask %s", step, mask)

    def fit(self, batches):
        for step, (noisy, clean) in enumerate(batches):
            self.opt.zero_grad()
            parts = 2 if FIX == "micro_batch" else 1
            for a, b in zip(noisy.chunk(parts), clean.chunk(parts)):
                with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                    mask = self.model(a)  # KEPT
                    loss = F.l1_loss(mask * a, b)
                self.note(step, mask)
                (loss / parts).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.opt.step()


def mixtures(n, rows=32, frames=800):
    for _ in range(n):
        clean = torch.rand(rows, BINS, frames, device="cuda")
        yield clean + 0.3 * torch.rand_like(clean), clean


limit()
Trainer(Enhancer().cuda(), make_logger()).fit(mixtures(44))
