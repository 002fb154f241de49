"""Extract ViT-B embeddings in fp16, keep the bank on the GPU, k-NN classify a few queries."""
import timm
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class FakeImages(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.randint(0, 256, (3, 224, 224), dtype=torch.uint8), i % 10


@torch.inference_mode()
def embed(model, loader, mean, std):
    feats, ys = [], []
    for img, y in loader:
        img = img.cuda(non_blocking=True).half().div_(255).sub_(mean).div_(std)
        tokens = model.forward_features(img)
        pooled = torch.cat([tokens[:, 0], tokens[:, 1:].mean(1)], dim=-1)
        feats.append(F.normalize(pooled.float(), dim=-1))
        ys.append(y.cuda())
    return torch.cat(feats), torch.cat(ys)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = timm.create_model("vit_base_patch16_224", pretrained=False, num_classes=0).eval().half().cuda()
    mean = torch.tensor([0.485, 0.456, 0.406], device="cuda", dtype=torch.half).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], device="cuda", dtype=torch.half).view(1, 3, 1, 1)
    bank, bank_y = embed(model, DataLoader(FakeImages(500), batch_size=128, num_workers=2, pin_memory=True), mean, std)
    query, query_y = embed(model, DataLoader(FakeImages(100), batch_size=128), mean, std)
    sim = query @ bank.T
    w, idx = sim.topk(20, dim=1)
    votes = torch.zeros(len(query), 10, device="cuda").scatter_add_(1, bank_y[idx], (w / 0.07).exp())
    print("bank", tuple(bank.shape), "knn acc", (votes.argmax(1) == query_y).float().mean().item())
