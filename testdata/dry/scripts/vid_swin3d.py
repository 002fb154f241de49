import torch
import torch.nn.functional as F
from torchvision.models.video import swin3d_t

torch.manual_seed(0)
ACC = 2
model = swin3d_t(weights=None)
model.head = torch.nn.Linear(model.head.in_features, 20)
model.cuda().train()

head_params = list(model.head.parameters())
head_ids = {id(p) for p in head_params}
body_params = [p for p in model.parameters() if id(p) not in head_ids]
opt = torch.optim.AdamW([{"params": body_params, "lr": 1e-4}, {"params": head_params, "lr": 1e-3}], weight_decay=0.02)

losses = []
opt.zero_grad(set_to_none=True)
for i in range(ACC * 4):
    video = torch.randn(4, 3, 16, 112, 112, device="cuda")
    label = torch.randint(20, (4,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(video), label) / ACC
    loss.backward()
    losses.append(loss.detach())
    if (i + 1) % ACC == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=40.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        print("update", (i + 1) // ACC, "loss", torch.stack(losses[-ACC:]).sum().item())

model.eval()
with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16):
    # three temporal views per clip, averaged
    views = torch.randn(2, 3, 3, 16, 112, 112, device="cuda")
    probs = model(views.flatten(0, 1)).softmax(-1).view(2, 3, -1).mean(1)
print("pred", probs.argmax(-1).tolist())
