"""Nine training and serving workloads, and one of streams and a CUDA graph.

Each workload is build(), which makes its model on the GPU, and steps(state, rng),
which yields one number per step: the loss, or a checksum where nothing is trained.
The same seed gives the same shapes and, with deterministic algorithms, the same bits.
A pass can be repeated on the same state, so that a warm process can be timed.
"""
import gc
import os
import random
import struct
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.deterministic

import allocators

MIB = 1 << 20
GPU = "cuda"
KEYS = ("reserved_bytes.all.peak", "allocated_bytes.all.peak", "active_bytes.all.peak", "requested_bytes.all.peak",
        "reserved_bytes.all.current", "allocated_bytes.all.current", "segment.all.peak", "num_alloc_retries", "num_ooms",
        "num_device_alloc", "num_device_free", "allocation.all.allocated")


def preload():
    """Imports everything a workload needs, without starting CUDA: for a parent that forks."""
    import torchvision  # noqa: F401
    from transformers import (DynamicCache, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,  # noqa: F401
                              MixtralConfig, MixtralForCausalLM)


def deterministic(seed):
    import warnings

    warnings.filterwarnings("ignore")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Filling every torch.empty would hide reads of memory that nobody wrote, and cost time.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = True
    if os.environ.get("COMPARE_SDP") == "math":  # the fused kernels' backward adds up in any order
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(seed)


def on_gpu(make, dtype=torch.float32):
    """Builds a module on the GPU in the given type: filling it on the CPU takes ten times as long."""
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        with torch.device(GPU):
            module = make()
    except torch.OutOfMemoryError:
        raise
    except Exception as e:  # a module that cannot be built so is built on the CPU and moved
        print(f"built on the CPU: {type(e).__name__}: {e}", flush=True)
        torch.set_default_dtype(before)
        module = make()
    finally:
        torch.set_default_dtype(before)
    return module.to(GPU, dtype)


def gpt2(layers=12, hidden=768, heads=12, vocab=50257):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads, vocab_size=vocab)
    return on_gpu(lambda: GPT2LMHeadModel(config)).train()


def llama(layers):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(num_hidden_layers=layers, hidden_size=2048, num_attention_heads=16, num_key_value_heads=4,
                         intermediate_size=5632, vocab_size=32000, max_position_embeddings=8192)
    return on_gpu(lambda: LlamaForCausalLM(config), torch.bfloat16)


def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(num_hidden_layers=4, hidden_size=1024, num_attention_heads=16, num_key_value_heads=4,
                           intermediate_size=2816, vocab_size=32000, num_local_experts=8, num_experts_per_tok=2)
    return on_gpu(lambda: MixtralForCausalLM(config), torch.bfloat16).train()


class Trained:
    """A model with its optimizer, whose state appears at the first step."""

    def __init__(self, model, make_optimizer=None):
        self.model = model
        make = make_optimizer or (lambda p: torch.optim.AdamW(p, lr=1e-4))
        self.optimizer = make(model.parameters())

    def update(self, loss):
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def language_steps(state, rng, steps, batch, length, autocast):
    vocab = state.model.config.vocab_size
    for _ in range(steps):
        x = torch.randint(0, vocab, (batch(rng), length(rng)), device=GPU)
        with torch.autocast(GPU, torch.bfloat16, enabled=autocast):
            loss = state.model(input_ids=x, labels=x).loss
        state.update(loss)
        value = loss.item()
        del loss, x
        yield value


def gpt2_fixed(state, rng):
    yield from language_steps(state, rng, 5, lambda r: 8, lambda r: 512, True)


def gpt2_varlen(state, rng):
    yield from language_steps(state, rng, 14, lambda r: r.choice([2, 4, 8, 12]), lambda r: r.randrange(64, 1024), True)


def build_llama_ckpt():
    model = llama(10).train()
    model.gradient_checkpointing_enable()
    return Trained(model)


def llama_ckpt(state, rng):
    yield from language_steps(state, rng, 8, lambda r: r.choice([1, 2, 4]), lambda r: r.randrange(256, 3072), False)


def moe_train(state, rng):
    yield from language_steps(state, rng, 8, lambda r: r.choice([1, 2, 4]), lambda r: r.randrange(128, 2048), False)


def build_resnet():
    import torchvision

    model = on_gpu(lambda: torchvision.models.resnet50()).train()
    return Trained(model, lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9))


def resnet_batches(state, rng):
    for batch in (1, 2, 4, 8, 16, 32, 64, 48, 24, 12, 64):
        x = torch.randn(batch, 3, 224, 224, device=GPU)
        label = torch.randint(0, 1000, (batch,), device=GPU)
        loss = F.cross_entropy(state.model(x).float(), label)
        state.update(loss)
        value = loss.item()
        del x, label, loss
        yield value


class UNet(nn.Module):
    """Four levels down and up with skip connections: the sizes follow the image."""

    def __init__(self, width=64):
        super().__init__()

        def convolutions(*channels):
            return nn.ModuleList(nn.Conv2d(a * width, b * width, 3, padding=1) for a, b in channels)

        self.entry = nn.Conv2d(4, width, 3, padding=1)
        self.down = convolutions((1, 2), (2, 4), (4, 8))
        self.middle = nn.Conv2d(8 * width, 8 * width, 3, padding=1)
        self.up = convolutions((16, 4), (8, 2), (4, 1), (2, 1))
        self.out = nn.Conv2d(width, 4, 1)

    def forward(self, x):
        skips = []
        for layer in (self.entry, *self.down):
            x = F.silu(layer(x))
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        x = F.silu(self.middle(x))
        for layer in self.up:
            skip = skips.pop()
            x = F.interpolate(x, size=skip.shape[-2:])
            x = F.silu(layer(torch.cat([x, skip], 1)))
        return self.out(x)


def unet_multires(state, rng):
    for _ in range(16):
        shape = rng.choice([1, 2, 4, 6]), 4, rng.randrange(20, 60) * 16, rng.randrange(20, 60) * 16
        x = torch.randn(shape, device=GPU)
        with torch.autocast(GPU, torch.bfloat16):
            loss = F.mse_loss(state.model(x), x)
        state.update(loss)
        value = loss.item()
        del x, loss
        yield value


def serve_generate(model, rng):
    from transformers import DynamicCache

    for _ in range(10):
        batch, prompt, length = rng.choice([1, 2, 4, 8, 16]), rng.randrange(32, 1500), rng.randrange(8, 40)
        x = torch.randint(0, 32000, (batch, prompt), device=GPU)
        with torch.no_grad():
            cache = DynamicCache()
            out = model(input_ids=x, past_key_values=cache, use_cache=True)
            for _ in range(length):
                token = out.logits[:, -1:].argmax(-1)
                out = model(input_ids=token, past_key_values=cache, use_cache=True)
        value = out.logits[:, -1].double().sum().item() + token.double().sum().item()
        del out, cache, x, token
        yield value


def leak_graph(state, rng):
    history = []  # every step's logits stay: the leak this workload is about
    for _ in range(12):
        x = torch.randint(0, 8000, (4, rng.randrange(200, 400)), device=GPU)
        out = state.model(input_ids=x, labels=x)
        state.update(out.loss)
        history.append(out.logits.detach())
        value = out.loss.item()
        del out, x
        yield value


def ckpt_spike(state, rng):
    for i in range(9):
        x = torch.randint(0, 50257, (4, 256), device=GPU)
        loss = state.model(input_ids=x, labels=x).loss
        state.update(loss)
        value = loss.item()
        del loss, x
        if i % 3 == 2:
            weights = {k: v.clone() for k, v in state.model.state_dict().items()}
            moments = [v.clone() for s in state.optimizer.state.values() for v in s.values() if torch.is_tensor(v)]
            del weights, moments
        yield value


def build_streams():
    return on_gpu(lambda: nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)))


def streams_graphs(model, rng):
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    for _ in range(20):
        with torch.cuda.stream(a):
            x = torch.randn(rng.randrange(100, 4000), 1024, device=GPU)
        b.wait_stream(a)
        with torch.cuda.stream(b):
            y = model(x)
            x.record_stream(b)
            z = y.sum()
        del x, y
        torch.cuda.current_stream().wait_stream(b)
        value = z.item()
        del z
        yield value
    static = torch.randn(512, 1024, device=GPU)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(2):
            model(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        out = model(static)
    graph.replay()
    torch.cuda.synchronize()
    yield out.sum().item()


# Cheap ones first: what is wrong with a set-up then shows early.
NINE = {
    "leak_graph": (lambda: Trained(gpt2(4, 512, 8, 8000)), leak_graph),
    "resnet_batches": (build_resnet, resnet_batches),
    "gpt2_fixed": (lambda: Trained(gpt2()), gpt2_fixed),
    "unet_multires": (lambda: Trained(on_gpu(UNet).train(), lambda p: torch.optim.AdamW(p)), unet_multires),
    "ckpt_spike": (lambda: Trained(gpt2(layers=8)), ckpt_spike),
    "gpt2_varlen": (lambda: Trained(gpt2()), gpt2_varlen),
    "moe_train": (lambda: Trained(mixtral()), moe_train),
    "llama_ckpt": (build_llama_ckpt, llama_ckpt),
    "serve_generate": (lambda: llama(12).eval(), serve_generate),
}
WORKLOADS = {**NINE, "streams_graphs": (build_streams, streams_graphs)}


def bits(value):
    """A number as its bits, so that equal means equal."""
    return struct.pack(">d", value).hex()


def run_pass(state, steps, seed, numbers, seconds, limit=None):
    """Goes through the steps once and appends each one's number, as bits, and its seconds:
    a pass that dies still tells how far it came."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for value in steps(state, rng):
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        numbers.append(bits(value))
        if len(numbers) == limit:
            break
        begin = time.perf_counter()


def serve(channel, name, allocator, seed=1, limit_mib=0):
    """Target of children.Worker: one pass in a fresh process, with its peaks; then as many
    timed passes as the parent asks for."""
    allocators.install(allocator)
    torch.cuda.init()
    deterministic(seed)
    if limit_mib:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(limit_mib * MIB / total)
    build, steps = WORKLOADS[name]
    answer = {"pid": os.getpid(), "oom": None, "numbers": [], "seconds": []}
    begin = time.perf_counter()
    try:
        state = build()
        torch.cuda.synchronize()
        answer["build_s"] = time.perf_counter() - begin
        run_pass(state, steps, seed, answer["numbers"], answer["seconds"])
    except torch.OutOfMemoryError as e:
        answer["oom"] = str(e)
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    answer["stats"] = {k: stats.get(k) for k in KEYS}
    channel.send(answer)
    while True:
        order = channel.receive()
        if order is None:
            return
        seconds = []
        gc.collect()
        gc.disable()
        run_pass(state, steps, seed, [], seconds, order["steps"])
        gc.enable()
        channel.send({"seconds": seconds})
