// Package cudatest builds a stand-in for NVIDIA's driver, for tests of
// everything that stands on driver/cuda on machines without a GPU.
//
// The stand-in is a shared library in C (fakecuda/) that exports the functions
// of libcuda and libnvidia-ml which driver/cuda calls. Its GPU has memory of the
// host, so copies and fills really happen, and it is strict: what the real
// driver refuses is refused with the same code.
//
//	lib := cudatest.Use(t)            // builds it and lets cuda.Open find it
//	dev := cudatest.Device(t, lib)    // opens it and checks for leaks at the end
//	lib.Fail("cuMemCreate", 2, 2)     // the second cuMemCreate runs out of memory
//
// Every build is a library of its own with its own state. Where there is no C
// compiler the test is skipped.
//
// Other processes are told by environment variables:
//
//	ASHLAR_LIBCUDA, ASHLAR_LIBNVML  the library
//	FAKECUDA_MEMORY                 bytes of each GPU, 8 GiB if not set
//	FAKECUDA_DEVICES                how many GPUs there are, at most 8; 1 if not set
//	FAKECUDA_CONTEXT                bytes a context takes, 300 MiB if not set
//	FAKECUDA_OTHERS                 bytes that other processes hold
//	FAKECUDA_LAZY=1                 work on streams waits until somebody waits for it
//	FAKECUDA_FAIL=NAME:N:CODE       the N-th call of NAME fails with CODE
//	FAKECUDA_INIT=CODE              cuInit fails with CODE
//	FAKECUDA_VERSION                13000 if not set
//	FAKECUDA_VIRTUAL=0              the GPU cannot map memory
//	FAKECUDA_POOLS=0                the GPU has no stream-ordered allocation
package cudatest
