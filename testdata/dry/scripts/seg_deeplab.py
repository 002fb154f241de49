import torch
import torch.nn.functional as F
from torchvision.models.segmentation import deeplabv3_resnet50

NUM_CLASSES, IGNORE, STEPS = 21, 255, 5
device = torch.device("cuda")
torch.manual_seed(0)

model = deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=NUM_CLASSES, aux_loss=True).to(device)
groups = [
    {"params": model.backbone.parameters(), "lr": 0.001},
    {"params": model.classifier.parameters(), "lr": 0.01},
    {"params": model.aux_classifier.parameters(), "lr": 0.01},
]
optimizer = torch.optim.SGD(groups, lr=0.01, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=STEPS, power=0.9)


def batch(n=6, size=320):
    x = torch.randn(n, 3, size, size, device=device)
    y = torch.randint(0, NUM_CLASSES, (n, size, size), device=device)
    y[:, :8] = IGNORE
    return x, y


def criterion(out, target):
    main = F.cross_entropy(out["out"], target, ignore_index=IGNORE)
    aux = F.cross_entropy(out["aux"], target, ignore_index=IGNORE)
    return main + 0.5 * aux


def validate():
    model.eval()
    hist = torch.zeros(NUM_CLASSES, NUM_CLASSES, device=device)
    with torch.no_grad():
        for _ in range(2):
            x, y = batch(4, 384)
            pred = model(x)["out"].argmax(1)
            keep = y != IGNORE
            idx = y[keep] * NUM_CLASSES + pred[keep]
            hist += torch.bincount(idx, minlength=NUM_CLASSES ** 2).view(NUM_CLASSES, NUM_CLASSES)
    iou = hist.diag() / (hist.sum(0) + hist.sum(1) - hist.diag()).clamp(min=1)
    model.train()
    return iou.mean().item()


model.train()
for step in range(STEPS):
    x, y = batch()
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(f"step {step}: loss={loss.item():.4f}")
    if step % 3 == 2:
        print(f"  mIoU={validate():.4f}")
