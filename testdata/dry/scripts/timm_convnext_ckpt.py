import argparse

import timm
import torch
import torch.nn as nn


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="convnext_tiny")
    ap.add_argument("--bs", type=int, default=48)
    ap.add_argument("--iters", type=int, default=5)
    ap.add_argument("--lr", type=float, default=5e-4)
    ap.add_argument("--no-ckpt", action="store_true")
    return ap.parse_args()


def main(a):
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    net = timm.create_model(a.model, pretrained=False, num_classes=1000, drop_path_rate=0.2)
    if not a.no_ckpt:
        net.set_grad_checkpointing(True)
    net = net.cuda().train()
    decay, plain = [], []
    for name, p in net.named_parameters():
        (plain if p.ndim <= 1 or name.endswith(".bias") else decay).append(p)
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}],
                            lr=a.lr, fused=True)
    warm = torch.optim.lr_scheduler.LinearLR(opt, 0.01, total_iters=2)
    cos = torch.optim.lr_scheduler.CosineAnnealingLR(opt, a.iters - 2)
    sched = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cos], milestones=[2])
    crit = nn.CrossEntropyLoss(label_smoothing=0.1)
    for i in range(a.iters):
        imgs = torch.rand(a.bs, 3, 224, 224).cuda(non_blocking=True)
        lbls = torch.randint(0, 1000, (a.bs,)).cuda(non_blocking=True)
        logits = net(imgs)
        loss = crit(logits, lbls)
        loss.backward()
        gnorm = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        sched.step()
        acc = (logits.argmax(1) == lbls).float().mean()
        print(f"iter {i} loss {loss.item():.3f} acc {acc.item():.3f} gnorm {gnorm.item():.2f}")


if __name__ == "__main__":
    main(parse())
