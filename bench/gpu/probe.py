"""Whether an allocator starts in this process, and what it says of itself."""
import allocators


def probe(channel, allocator):
    """Target of children.Worker."""
    import torch

    allocators.install(allocator)
    torch.cuda.init()
    x = torch.ones(64, 64, device="cuda")
    total = float((x @ x).sum())
    if total != 64.0**3:
        raise RuntimeError(f"a product of ones gave {total}")
    channel.send({"backend": torch.cuda.get_allocator_backend(), "reserved_bytes": torch.cuda.memory_reserved(),
                  "gpu": torch.cuda.get_device_name(0)})
