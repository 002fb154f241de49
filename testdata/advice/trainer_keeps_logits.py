CASE = {"root": "leak", "cures": ["cpu", "del", "bound"], "fixes": ["cpu", "del", "bound", "detach", "micro_batch", "half"], "needs": ["transformers", "accelerate"]}
import tempfile
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from case import FIX, limit


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 4 * 16

    def __getitem__(self, i):
        ids = torch.randint(0, 8000, (128,))
        return {"input_ids": ids, "labels": ids}


class LoggingTrainer(Trainer):
    logits = []

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)  # KEPT
        if FIX == "cpu":
            self.logits.append(outputs.logits.detach().cpu())
        elif FIX == "detach":
            self.logits.append(outputs.logits.detach())
        elif FIX != "del":
            self.logits.append(outputs.logits)  # for the calibration plot
        if FIX == "bound":
            del self.logits[:-1]
        return (loss, outputs) if return_outputs else loss


limit()
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=256, n_head=4, vocab_size=8000, n_positions=128))
micro = 4 if FIX == "micro_batch" else 8
args = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=micro, gradient_accumulation_steps=8 // micro, max_steps=20, report_to="none", save_strategy="no",
                         logging_strategy="no", disable_tqdm=True, **({"bf16": True} if FIX == "half" else {}))
LoggingTrainer(model=model, args=args, train_dataset=Tokens()).train()  # KEPT
