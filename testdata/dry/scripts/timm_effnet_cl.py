import timm
import timm.optim
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.backends.cudnn.benchmark = True
torch.manual_seed(11)

BATCH = 64
images = torch.randn(BATCH * 5, 3, 224, 224)
labels = torch.randint(0, 200, (BATCH * 5,))
loader = DataLoader(TensorDataset(images, labels), batch_size=BATCH, shuffle=True, pin_memory=True, drop_last=True)

model = timm.create_model("efficientnet_b0", pretrained=False, num_classes=200, drop_rate=0.2, drop_path_rate=0.2)
model = model.to(device="cuda", memory_format=torch.channels_last)
optimizer = timm.optim.create_optimizer_v2(model, opt="rmsproptf", lr=0.01, weight_decay=1e-5, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", init_scale=2.0 ** 14)
loss_fn = torch.nn.CrossEntropyLoss().cuda()

model.train()
for i, (x, y) in enumerate(loader):
    x = x.to("cuda", non_blocking=True).contiguous(memory_format=torch.channels_last)
    y = y.to("cuda", non_blocking=True)
    with torch.amp.autocast("cuda"):
        out = model(x)
        loss = loss_fn(out, y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if i % 2 == 0:
        print(f"[{i}/{len(loader)}] loss: {loss.item():.4f}")

torch.cuda.synchronize()
print("max allocated MB:", torch.cuda.max_memory_allocated() // 2 ** 20)
