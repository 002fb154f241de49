CASE = {"root": "leak", "cures": ["cpu", "del"], "fixes": ["cpu", "del", "micro_batch", "half"], "needs": ["transformers", "accelerate"]}
import tempfile
import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments
from case import FIX, limit


class Tokens(torch.utils.data.Dataset):
    def __init__(self, n):
        self.ids = torch.randint(0, 10000, (n, 128))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def metrics(prediction):
    return {"accuracy": 0.0}


limit()
config = BertConfig(num_hidden_layers=2, hidden_size=256, num_attention_heads=4, intermediate_size=1024, vocab_size=10000, max_position_embeddings=128)
micro = 8 if FIX == "micro_batch" else 16
args = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, per_device_eval_batch_size=micro, max_steps=4, report_to="none", save_strategy="no", logging_strategy="no",
                         disable_tqdm=True, eval_accumulation_steps=1 if FIX == "cpu" else None, **({"bf16_full_eval": True} if FIX == "half" else {}))
trainer = Trainer(model=BertForMaskedLM(config), args=args, train_dataset=Tokens(32), eval_dataset=Tokens(160), compute_metrics=metrics,
                  preprocess_logits_for_metrics=(lambda logits, labels: logits.argmax(-1)) if FIX == "del" else None)
trainer.train()
trainer.evaluate()  # KEPT
