import math
import torch
import torch.nn as nn
import torch.nn.functional as F

def transformer(width, layers, heads):
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu",
                                       batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

class ImageTower(nn.Module):
    def __init__(self, width=512, out=256, res=160, patch=16):
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch, bias=False)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.pos = nn.Parameter(0.02 * torch.randn(1, (res // patch) ** 2 + 1, width))
        self.body, self.ln, self.proj = transformer(width, 8, 8), nn.LayerNorm(width), nn.Linear(width, out, bias=False)

    def forward(self, img):
        x = self.patch(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], dim=1) + self.pos
        return self.proj(self.ln(self.body(x)[:, 0]))

class TextTower(nn.Module):
    def __init__(self, vocab=20000, width=384, out=256, ctx=64):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, width), nn.Parameter(0.01 * torch.randn(1, ctx, width))
        self.body, self.ln, self.proj = transformer(width, 6, 6), nn.LayerNorm(width), nn.Linear(width, out, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(ctx), persistent=False)

    def forward(self, ids):
        x = self.body(self.tok(ids) + self.pos, mask=self.mask, is_causal=True)
        eot = ids.argmax(dim=-1)
        return self.proj(self.ln(x[torch.arange(x.size(0), device=x.device), eot]))

img_tower, txt_tower = ImageTower().cuda(), TextTower().cuda()
logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07), device="cuda"))
params = [*img_tower.parameters(), *txt_tower.parameters(), logit_scale]
opt = torch.optim.AdamW(params, lr=5e-4, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.2)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 3))

for step in range(5):
    images = torch.randn(128, 3, 160, 160, device="cuda")
    tokens = torch.randint(0, 20000, (128, 64), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        fi = F.normalize(img_tower(images), dim=-1)
        ft = F.normalize(txt_tower(tokens), dim=-1)
        logits = logit_scale.exp() * fi @ ft.t()
    target = torch.arange(len(images), device="cuda")
    loss = (F.cross_entropy(logits.float(), target) + F.cross_entropy(logits.float().t(), target)) / 2
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
    sched.step()
    with torch.no_grad():
        logit_scale.clamp_(0, math.log(100))
    print(f"step {step} loss {loss.item():.4f} scale {logit_scale.exp().item():.2f}")
