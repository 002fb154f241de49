"""The six cases beside this file, with every fix that applies. usage: fixes.py NAME"""
import os, random, sys
sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import *
from torch.utils.checkpoint import checkpoint
from case import FIX, MIB

FIXES = {
    "loss_list": ["detach", "no_grad", "cpu", "bound", "del", "micro_batch", "half"],
    "preds_on_gpu": ["cpu", "del", "bound", "half", "detach", "no_grad", "micro_batch"],
    "varlen_frag": ["micro_batch", "checkpoint", "chunked_loss", "half", "optimizer", "empty_cache"],
    "big_batch": ["micro_batch", "checkpoint", "chunked_loss", "half", "optimizer"],
    "adam_first_step": ["optimizer", "half", "micro_batch", "checkpoint", "empty_cache"],
    "ckpt_clone": ["cpu", "del", "half", "optimizer", "micro_batch", "empty_cache"],
}


class Model(GPT):
    def hidden(self, ids):
        x = self.emb(ids)
        for b in self.blocks:
            x = checkpoint(b, x, use_reentrant=False) if FIX == "checkpoint" else b(x)
        return self.norm(x)


def loss_of(model, ids):
    with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
        h, target = model.hidden(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
        if FIX != "chunked_loss":
            return F.cross_entropy(model.head(h), target)
        part = lambda a, b: F.cross_entropy(model.head(a), b, reduction="sum")
        return sum(checkpoint(part, a, b, use_reentrant=False) for a, b in zip(h.chunk(8), target.chunk(8))) / len(target)


def adamw(model):
    return torch.optim.SGD(model.parameters(), 1e-3) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), 1e-4)


def train_step(model, opt, ids):
    for i, part in enumerate(ids.chunk(2 if FIX == "micro_batch" else 1)):
        loss = loss_of(model, part)
        if i == 0:
            opt.zero_grad()
        loss.backward()
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    opt.step()


def loss_list():
    model, losses = Model().cuda(), []
    opt = adamw(model)
    for step in range(60):
        train_step(model, opt, batch(4, 257))
        with torch.set_grad_enabled(FIX != "no_grad"):
            aux = model.emb(batch(4, 2049)).pow(2).mean() + 0 * model.norm(model.emb(batch(2, 1024))).mean()
        if FIX != "del":
            losses.append(aux.item() if FIX == "detach" else aux.detach().cpu() if FIX == "cpu" else aux)
        if FIX == "bound":
            del losses[:-4]


def preds_on_gpu():
    model, preds = Model(n=3).cuda().eval(), []
    with torch.no_grad():
        for step in range(120):
            for part in batch(4, 256).chunk(2 if FIX == "micro_batch" else 1):
                p = model(part).softmax(-1)
                preds.append(p.cpu() if FIX == "cpu" else p.argmax(-1) if FIX == "del" else p.half() if FIX == "half" else p.detach())
            if FIX == "bound":
                del preds[:-4]


def varlen_frag():
    rng, model = random.Random(3), Model(d=512, n=8, vocab=16000).cuda()
    opt = adamw(model)
    for step in range(70):
        train_step(model, opt, batch(6, rng.randint(64, 700), 16000))


def big_batch():
    model = Model().cuda()
    opt = adamw(model)
    for step in range(8):
        train_step(model, opt, batch(32, 513))
        opt.zero_grad()


def adam_first_step():
    model = Model(d=1024, n=10, vocab=20000).cuda()
    if FIX == "half":
        model.to(torch.bfloat16)
    opt = adamw(model)
    for step in range(4):
        train_step(model, opt, batch(1, 65, 20000).repeat(2, 1)[:2 if FIX == "micro_batch" else 1])


def ckpt_clone():
    model = Model(d=768, n=8).cuda()
    opt, dev = adamw(model), "cpu" if FIX == "cpu" else "cuda"
    copied = lambda t: t.half() if FIX == "half" else t.detach().to(dev, copy=True)
    for step in range(12):
        train_step(model, opt, batch(2, 257))
        if step % 4 == 3 and FIX != "del":
            state = {k: copied(v) for k, v in model.state_dict().items()}, [copied(t) for s in opt.state.values() for t in s.values() if t.numel() > 1]
            del state


if __name__ == "__main__":
    name = sys.argv[1]
    limit(MIB)
    globals()[name]()
