import torch
from transformers import Adafactor, T5Config, T5ForConditionalGeneration


def make_batch(bs, src_len, tgt_len, vocab):
    src = torch.randint(2, vocab, (bs, src_len))
    tgt = torch.randint(2, vocab, (bs, tgt_len))
    src_lens = torch.randint(src_len // 2, src_len + 1, (bs,))
    tgt_lens = torch.randint(tgt_len // 2, tgt_len + 1, (bs,))
    mask = torch.arange(src_len)[None] < src_lens[:, None]
    src[~mask] = 0
    tgt[torch.arange(tgt_len)[None] >= tgt_lens[:, None]] = -100
    return {"input_ids": src, "attention_mask": mask.long(), "labels": tgt}


def main():
    torch.manual_seed(3)
    config = T5Config(d_model=512, d_ff=1024, num_layers=6, num_heads=8, d_kv=64, feed_forward_proj="gated-gelu",
                      decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config).to("cuda")
    optimizer = Adafactor(model.parameters(), lr=1e-3, scale_parameter=False, relative_step=False, warmup_init=False)
    model.train()
    losses = []
    for step in range(5):
        batch = {k: v.to("cuda") for k, v in make_batch(16, 384, 96, config.vocab_size).items()}
        out = model(**batch)
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(out.loss.item())
    print("losses", [round(l, 3) for l in losses])

    model.eval()
    src = make_batch(8, 128, 8, config.vocab_size)
    with torch.no_grad():
        gen = model.generate(input_ids=src["input_ids"].cuda(), attention_mask=src["attention_mask"].cuda(),
                             max_new_tokens=16, num_beams=2)
    print(gen.shape)


if __name__ == "__main__":
    main()
