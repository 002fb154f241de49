package serve

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a release of vLLM.
type Version struct{ Major, Minor, Patch int }

// Newest is the newest version whose sources were read.
var Newest = Version{0, 27, 1}

// oldest is the first version that asks the driver how much memory is free.
var oldest = Version{0, 2, 5}

// ParseVersion reads a version such as 0.10.1, v0.9.2 or 0.8.5.post1.
func ParseVersion(text string) (Version, error) {
	bad := fmt.Errorf("%q is no version of vLLM: write one such as %s", text, Newest)
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(text), "v"), ".")
	if len(parts) < 2 {
		return Version{}, bad
	}
	var n [3]int
	for i := range min(len(parts), 3) {
		digits := parts[i]
		if i == 2 { // 2rc1, 1+cu129
			digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		}
		v, err := strconv.Atoi(digits)
		if err != nil {
			return Version{}, bad
		}
		n[i] = v
	}
	v := Version{n[0], n[1], n[2]}
	if v.less(oldest) {
		return Version{}, fmt.Errorf("vLLM %s is older than %s, the first version that is modelled", v, oldest)
	}
	return v, nil
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

func (v Version) less(w Version) bool {
	if v.Major != w.Major {
		return v.Major < w.Major
	}
	if v.Minor != w.Minor {
		return v.Minor < w.Minor
	}
	return v.Patch < w.Patch
}

// since reports whether v has what came with 0.minor.patch.
func (v Version) since(minor, patch int) bool { return !v.less(Version{0, minor, patch}) }

// v1 reports whether the V1 engine is the default.
func (v Version) v1() bool { return v.since(8, 0) }

// utilization is the default of --gpu-memory-utilization.
func (v Version) utilization() float64 {
	if v.since(20, 0) {
		return 0.92
	}
	return 0.9
}

// deductsGraphs reports whether CUDA graphs are taken off before the cache is
// sized. From 0.18 on an environment variable asks for it, from 0.20 on it is the
// default; Model Runner V2 does not do it.
func (r *Request) deductsGraphs() bool {
	return r.Version.since(20, 0) && !r.Eager && !r.runnerV2()
}

// runnerV2 reports whether Model Runner V2 runs the model.
func (r *Request) runnerV2() bool {
	m, v := r.Model, r.Version
	dense := m.MoE == nil && m.Linear == nil
	switch {
	case v.since(25, 0):
		return dense || m.Family == "deepseek_v2"
	case v.since(24, 0):
		return m.Family == "llama" || m.Family == "mistral" || m.Family == "qwen3" || m.Family == "deepseek_v2"
	case v.since(23, 0):
		return m.Quantised == "" && (m.Family == "llama" || m.Family == "mistral" || m.Family == "qwen3")
	case v.since(22, 0):
		return m.Quantised == "" && m.Family == "qwen3"
	}
	return false
}

// hybrid reports whether layers of several kinds get blocks of their own.
// Before, a sliding layer held all tokens like a full one.
func (v Version) hybrid() bool { return v.since(9, 1) }

// account is what the profiling run counts as used.
type account int

const (
	// segments: all that the driver gave since vLLM began, cached blocks too.
	segments account = iota
	// device: the peak of torch's allocations and all else that is used on the
	// card, CUDA's context and other programs too.
	device
	// increase: weights, the rise of torch's peak, and what was taken outside torch
	// since vLLM began; the context is there before.
	increase
)

// accounting is how vLLM finds what is used. v1 is whether the V1 engine runs.
func (v Version) accounting(v1 bool) account {
	switch {
	case !v.since(6, 4):
		return segments
	case !v.since(6, 5), v1 && !v.since(9, 1):
		return device
	}
	return increase
}

// countsContext reports whether CUDA's context is part of what is used.
func (v Version) countsContext(v1 bool) bool {
	return v.accounting(v1) == device || !v.since(3, 1)
}

// sampling is the sampler's way through the logits.
type sampling int

const (
	sorts         sampling = iota // PyTorch's sort
	sortsInverted                 // and the inverse of its order
	flashInfer                    // FlashInfer's kernels, or Triton's: no sort
	copies                        // an fp32 copy alone: Model Runner V2 profiles no more
)

// sampler is the one that runs if nobody chose. Before 0.11.1 V1 takes FlashInfer
// where it is installed, which pip does not do.
func (v Version) sampler() sampling {
	switch {
	case v.since(17, 0):
		return flashInfer
	case v.since(6, 2):
		return sorts
	}
	return sortsInverted
}
