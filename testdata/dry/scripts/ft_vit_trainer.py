import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification


class Shapes(Dataset):
    def __init__(self, n, size, classes):
        self.n, self.size, self.classes = n, size, classes

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        gen = torch.Generator().manual_seed(idx)
        return {
            "pixel_values": torch.randn(3, self.size, self.size, generator=gen),
            "labels": idx % self.classes,
        }


def accuracy(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


config = ViTConfig(hidden_size=576, num_hidden_layers=10, num_attention_heads=9, intermediate_size=2304,
                   image_size=224, patch_size=16, num_labels=20)
model = ViTForImageClassification(config)

with tempfile.TemporaryDirectory() as out:
    args = TrainingArguments(
        output_dir=out,
        max_steps=6,
        per_device_train_batch_size=48,
        per_device_eval_batch_size=64,
        learning_rate=2e-4,
        warmup_steps=2,
        weight_decay=0.05,
        bf16=True,
        logging_steps=2,
        eval_strategy="steps",
        eval_steps=3,
        save_strategy="no",
        report_to="none",
        remove_unused_columns=False,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=args, train_dataset=Shapes(48 * 6, 224, 20),
                      eval_dataset=Shapes(96, 224, 20), compute_metrics=accuracy)
    result = trainer.train()
    print(result.training_loss)
