# knowledge distillation of a small causal LM with Accelerate: frozen teacher, student in bf16 autocast
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

VOCAB, CTX, TEMP = 16384, 256, 2.0
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
teacher = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=CTX, n_embd=768, n_layer=8, n_head=12,
                                     bos_token_id=0, eos_token_id=0))
student = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=CTX, n_embd=512, n_layer=4, n_head=8,
                                     bos_token_id=0, eos_token_id=0))
teacher.eval().requires_grad_(False)
teacher.to(accelerator.device, dtype=torch.bfloat16)

opt = torch.optim.AdamW(student.parameters(), lr=3e-4, betas=(0.9, 0.95))
sched = get_cosine_schedule_with_warmup(opt, num_warmup_steps=1, num_training_steps=6)
dl = DataLoader(TensorDataset(torch.randint(0, VOCAB, (12 * 16, CTX))), batch_size=16, shuffle=True, drop_last=True)
student, opt, dl, sched = accelerator.prepare(student, opt, dl, sched)

student.train()
total = torch.zeros((), device=accelerator.device)
for i, (ids,) in enumerate(dl):
    with accelerator.accumulate(student):
        with torch.no_grad():
            t_logits = teacher(input_ids=ids, use_cache=False).logits
        out = student(input_ids=ids, labels=ids, use_cache=False)
        kd = F.kl_div(
            F.log_softmax(out.logits / TEMP, dim=-1).flatten(0, 1),
            F.softmax(t_logits.float() / TEMP, dim=-1).flatten(0, 1),
            reduction="batchmean",
        ) * TEMP ** 2
        loss = 0.5 * out.loss + 0.5 * kd
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            norm = accelerator.clip_grad_norm_(student.parameters(), max_norm=1.0)
        opt.step()
        sched.step()
        opt.zero_grad(set_to_none=True)
    total += loss.detach()
    if accelerator.sync_gradients:
        accelerator.print(f"{i}: loss {total.item() / (i + 1):.4f} grad {float(norm):.3f} lr {sched.get_last_lr()[0]:.2e}")
accelerator.end_training()
