"""Whether an allocator starts in a child process, and what it says of itself."""
import allocators
import children


def probe(channel, allocator):
    """Target of children.Worker."""
    import torch

    allocators.install(allocator)
    torch.cuda.init()
    facts = {"backend": torch.cuda.get_allocator_backend(), "gpu": torch.cuda.get_device_name(0)}
    if allocator != "noop":
        x = torch.ones(64, 64, device="cuda")
        total = float((x @ x).sum())
        if total != 64.0**3:
            raise RuntimeError(f"a product of ones gave {total}")
        facts["reserved_bytes"] = torch.cuda.memory_reserved()
    channel.send(facts)


def starts(report, names):
    """(whether children may be forked, whether every allocator starts)."""
    fork, all_start = True, True
    for name in names:
        for attempt in dict.fromkeys((fork, False)):
            worker = children.Worker("probe", "probe", {"allocator": name}, None, attempt)
            try:
                report.note(f"{name}: {worker.receive(60)}")
                fork = attempt
                break
            except children.Failed as e:
                report.note(f"{name} does not start in a {'forked' if attempt else 'fresh'} process: {e}")
                if not attempt:
                    all_start = False
            finally:
                worker.stop()
    return fork, all_start
