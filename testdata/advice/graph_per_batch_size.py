CASE = {"root": "stranded", "cures": ["del", "bound"], "fixes": ["del", "bound", "empty_cache", "half", "micro_batch"], "limit": "reserved", "weight": 0.5}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
model = nn.Sequential(nn.Linear(1024, 8192), nn.GELU(), nn.Linear(8192, 1024), nn.GELU(), nn.Linear(1024, 64)).cuda()
graphs, warm = {}, torch.cuda.Stream()


@torch.no_grad()
def capture(rows):
    """A CUDA graph for one batch size, with memory of its own."""
    x = torch.randn(rows, 1024, device="cuda")
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        model(x)
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    graphs[rows] = graph, x, y


for rows in (4096, 1024) if FIX == "bound" else (512, 1024, 1536, 2048, 3072, 4096):
    capture(rows)
for rows, (graph, x, y) in graphs.items():
    x.normal_()
    graph.replay()
torch.cuda.synchronize()
if FIX == "del":
    graphs.clear()
    del graph, x, y
if FIX == "empty_cache":
    torch.cuda.empty_cache()
# the same process goes on with the night's training
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(6):
    batch, target = torch.randn(4096, 1024, device="cuda"), torch.randn(4096, 64, device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for a, b in zip(batch.chunk(parts), target.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = F.mse_loss(model(a), b)
        loss.backward()
    opt.step()
