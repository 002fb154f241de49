// Package cudatest builds a fake of NVIDIA's driver, so that everything built on
// driver/cuda can be tested on machines without a GPU.
//
// The fake is a shared library in C (fakecuda/) that exports the functions of
// libcuda and libnvidia-ml which driver/cuda calls. Its GPU uses host memory, so
// copies and fills really happen, and it is strict: it refuses what the real
// driver refuses, with the same code.
//
//	lib := cudatest.Use(t)            // builds it and lets cuda.Open find it
//	dev := cudatest.Device(t, lib)    // opens it and checks for leaks at the end
//	lib.Fail("cuMemCreate", 2, 2)     // the second cuMemCreate runs out of memory
//
// Every build is a separate library with its own state. Tests are skipped where
// there is no C compiler.
//
// Environment variables configure it in other processes:
//
//	ASHLAR_LIBCUDA, ASHLAR_LIBNVML  the library
//	FAKECUDA_MEMORY                 bytes of each GPU, 8 GiB if not set
//	FAKECUDA_DEVICES                how many GPUs there are, at most 8; 1 if not set
//	FAKECUDA_CONTEXT                bytes a context takes, 300 MiB if not set
//	FAKECUDA_OTHERS                 bytes that other processes hold
//	FAKECUDA_LAZY=1                 work on streams runs only when something waits for it
//	FAKECUDA_FAIL=NAME:N:CODE       the N-th call of NAME fails with CODE; with :ever behind it
//	                                all later ones do, too
//	FAKECUDA_CALLS=FILE             the names of the calls that are made, each once
//	FAKECUDA_INIT=CODE              cuInit fails with CODE
//	FAKECUDA_VERSION                13000 if not set
//	FAKECUDA_VIRTUAL=0              the GPU cannot map memory
//	FAKECUDA_HOST_MEMORY            bytes of host memory that can be mapped, 64 GiB if not set;
//	                                half of it is on the one NUMA node
//	FAKECUDA_HOST_HANDLES=0         no host memory can be mapped
//	FAKECUDA_NUMA=0                 the machine has no NUMA nodes
//	FAKECUDA_POOLS=0                the GPU has no stream-ordered allocation
package cudatest
