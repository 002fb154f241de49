import lightning as L
import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy


class LitResNet(L.LightningModule):
    def __init__(self, num_classes=10, lr=0.05, max_steps=6):
        super().__init__()
        self.save_hyperparameters()
        self.model = torchvision.models.resnet34(weights=None, num_classes=num_classes)
        self.train_acc = MulticlassAccuracy(num_classes=num_classes)
        self.val_acc = MulticlassAccuracy(num_classes=num_classes)

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.train_acc(logits, y)
        self.log("train_loss", loss, on_step=True)
        self.log("train_acc", self.train_acc, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc.update(logits, y)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", self.val_acc, on_epoch=True)

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=5e-4)
        sch = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=self.hparams.max_steps)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sch, "interval": "step"}}


def loader(n, bs, shuffle=False):
    ds = TensorDataset(torch.randn(n, 3, 160, 160), torch.randint(0, 10, (n,)))
    return DataLoader(ds, batch_size=bs, shuffle=shuffle, pin_memory=True)


if __name__ == "__main__":
    L.seed_everything(0)
    trainer = L.Trainer(accelerator="gpu", devices=1, precision="bf16-mixed", max_epochs=2, gradient_clip_val=1.0,
                        logger=False, enable_checkpointing=False, enable_progress_bar=False, log_every_n_steps=1)
    trainer.fit(LitResNet(), loader(192, 64, True), loader(128, 64))
    print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
