import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV2

torch.manual_seed(0)
NUM_CLASSES = 100
model = timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=NUM_CLASSES, drop_path_rate=0.1)
model = model.to("cuda")
ema = ModelEmaV2(model, decay=0.9998)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=NUM_CLASSES)
criterion = SoftTargetCrossEntropy()


@torch.inference_mode()
def validate(m, n=96):
    m.eval()
    x = torch.randn(n, 3, 224, 224, device="cuda")
    y = torch.randint(0, NUM_CLASSES, (n,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = m(x)
    top5 = logits.topk(5, dim=1).indices.eq(y[:, None]).any(1).float().mean()
    return top5.item()


model.train()
for step in range(6):
    x = torch.randn(64, 3, 224, 224, device="cuda")
    y = torch.randint(0, NUM_CLASSES, (64,), device="cuda")
    x, target = mixup(x, y)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
    print(f"{step}: {loss.item():.4f}")

print("ema top5", validate(ema.module))
print(f"peak {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB")
