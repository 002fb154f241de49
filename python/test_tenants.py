"""Tests of the tenants of ashlar_torch.py without a GPU: torch is a fake, the
library is the real one over its simulated driver, with 256 MiB."""
import textwrap
import unittest

from torch_case import JobCase


# The fake cannot catch what PyTorch catches, so requests that fail are made without exceptions.
REFUSAL = """
import ctypes
def refusal(size, stream=0):
    so, p = ashlar_torch._answers.ashlar.so, ctypes.c_void_p()
    code = so.ashlar_front_malloc(ctypes.c_size_t(size), 0, ctypes.c_void_p(stream), ctypes.byref(p))
    return so.ashlar_error_text().decode() if code else None
"""


class TestTenants(JobCase):
    def test_guarantee(self):
        self.job(REFUSAL + textwrap.dedent("""
            MIB = 1 << 20
            serve = ashlar_torch.tenant("serve", guarantee="100MiB", priority=10)
            try:
                ashlar_torch.tenant("ser\\0ve")
            except ValueError as e:
                assert "has a NUL in it" in str(e), e
            else:
                raise AssertionError("a NUL was cut")
            blocks = [torch.take(20 * MIB) for _ in range(7)]  # of the 156 MiB that are not guaranteed
            said = refusal(20 * MIB)
            assert "Tenant default has 140.00 MiB reserved, 0 B guaranteed" in said, said
            with serve:
                answers = [torch.take(20 * MIB) for _ in range(5)]
                assert torch.cuda.current_stream() is serve.stream
            assert serve.stats()["reserved_bytes"]["all"]["current"] == 100 * MIB
            assert torch.cuda.memory_reserved() == 240 * MIB and torch.cuda.memory_allocated() == 240 * MIB
            usage = serve.usage()
            assert usage["limit_bytes"] == 256 * MIB and [u["name"] for u in usage["tenants"]] == ["default", "serve"]
            for block in answers:
                torch.drop(block)  # outside of the tenant
            assert serve.stats()["allocated_bytes"]["all"]["current"] == 0
            torch.cuda.empty_cache()
            serve.resize("20MiB")
            serve.close()
        """))

    def test_streams_are_ordered(self):
        self.job("""
            import threading
            t = ashlar_torch.tenant("a")
            outer = torch.cuda.current_stream()
            with t:
                assert (t.stream.waits, outer.waits) == ([outer.cuda_stream], [])
                with t:
                    pass
                assert torch.cuda.current_stream() is t.stream
            assert outer.waits == [t.stream.cuda_stream] and torch.cuda.current_stream() is outer
            other = torch.cuda.Stream()
            t.bind(other)
            def work():  # as a backward thread: the stream decides, not the thread
                torch.drop(torch.take(3 << 20, other.cuda_stream))
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert t.stats()["allocation"]["all"]["allocated"] == 1
        """)

    def test_environment(self):
        self.job(REFUSAL + textwrap.dedent("""
            torch.drop(torch.take(1000))
            t = ashlar_torch.tenant("serve", guarantee="50MiB")
            serve = t.usage()["tenants"][1]
            assert (serve["guarantee_bytes"], serve["ceiling_bytes"]) == (50 << 20, 0), serve
            assert "exceed its ceiling" in refusal(90 << 20)
        """), ASHLAR_TENANTS="serve:guarantee=100MiB,ceiling=120MiB;default:ceiling=80MiB")

    def test_refused(self):
        self.job("""
            for make, want in [
                (lambda: ashlar_torch.tenant("a", guarantee="30 apples"), "no size"),
                (lambda: ashlar_torch.tenant("a", guarantee=-1), "negative"),
                (lambda: ashlar_torch.tenant("a", guarantee="300MiB"), "cannot be guaranteed now"),
                (lambda: ashlar_torch.tenant("a", guarantee=2, ceiling=1), "below the guarantee"),
                (lambda: ashlar_torch.tenant("a", limit="1MiB", guarantee="2MiB"), "cannot be guaranteed"),
            ]:
                try:
                    make()
                except (RuntimeError, ValueError) as e:
                    assert want in str(e), e
                else:
                    raise AssertionError(want)
        """)


if __name__ == "__main__":
    unittest.main()
