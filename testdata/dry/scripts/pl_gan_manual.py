import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

class Generator(nn.Module):
    def __init__(self, z=128, c=64):
        super().__init__()
        self.fc = nn.Linear(z, c * 8 * 8 * 8)
        layers, ch = [], c * 8
        for nxt in (c * 4, c * 2, c):
            layers += [nn.Upsample(scale_factor=2), nn.Conv2d(ch, nxt, 3, padding=1), nn.BatchNorm2d(nxt), nn.ReLU(True)]
            ch = nxt
        self.net = nn.Sequential(*layers, nn.Conv2d(ch, 3, 3, padding=1), nn.Tanh())
        self.c = c

    def forward(self, z):
        return self.net(self.fc(z).view(z.size(0), self.c * 8, 8, 8))

def discriminator(c=64):
    return nn.Sequential(
        nn.Conv2d(3, c, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(c, 2 * c, 4, 2, 1), nn.InstanceNorm2d(2 * c),
        nn.LeakyReLU(0.2), nn.Conv2d(2 * c, 4 * c, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(4 * c * 64, 1))

class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.G, self.D = Generator(), discriminator()

    def training_step(self, real, batch_idx):
        opt_g, opt_d = self.optimizers()
        z = torch.randn(real.size(0), 128, device=self.device)

        self.toggle_optimizer(opt_g)
        g_loss = F.softplus(-self.D(self.G(z))).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()
        self.untoggle_optimizer(opt_g)

        self.toggle_optimizer(opt_d)
        d_loss = F.softplus(-self.D(real)).mean() + F.softplus(self.D(self.G(z).detach())).mean()
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.untoggle_optimizer(opt_d)
        self.log_dict({"g_loss": g_loss, "d_loss": d_loss})

    def configure_optimizers(self):
        kw = dict(lr=2e-4, betas=(0.5, 0.999))
        return torch.optim.Adam(self.G.parameters(), **kw), torch.optim.Adam(self.D.parameters(), **kw)

data = DataLoader(torch.rand(128 * 5, 3, 64, 64) * 2 - 1, batch_size=128)
trainer = L.Trainer(accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(GAN(), data)
print({k: float(v) for k, v in trainer.callback_metrics.items()})
