CASE = {"root": "spike", "cures": ["cpu"], "fixes": ["cpu", "del", "half", "empty_cache", "micro_batch"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
PATH = "last.pt"
model = nn.Sequential(nn.Embedding(20000, 512), nn.GRU(512, 1024, 2, batch_first=True)).cuda()
head = nn.Linear(1024, 20000).cuda()
opt = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)


def save():
    torch.save({"model": model.state_dict(), "head": head.state_dict(), "opt": opt.state_dict()}, PATH)


def restore():
    """The loss was not a number: go back to the last checkpoint."""
    state = torch.load(PATH, map_location="cpu" if FIX == "cpu" else "cuda")
    model.load_state_dict(state["model"])
    head.load_state_dict(state["head"])
    if FIX == "del":
        del state["model"], state["head"]
    opt.load_state_dict(state["opt"])


for step in range(10):
    opt.zero_grad()
    for ids in torch.randint(0, 20000, (8, 33), device="cuda").chunk(2 if FIX == "micro_batch" else 1):
        with torch.autocast("cuda", torch.float16, enabled=FIX == "half"):
            out, _ = model(ids[:, :-1])
            logits = head(out)
        F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten()).backward()
    opt.step()
    if step == 2:
        save()
    if step == 7:
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        restore()
