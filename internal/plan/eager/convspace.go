package eager

import "slices"

// Convolution is what cuDNN's choice of a kernel depends on.
type Convolution struct {
	X, W, Y                   []int64 // shapes, of a transposed one as PyTorch has them too
	Type                      DType
	ChannelsLast, Transposed  bool
	Stride, Padding, Dilation []int64
	Groups                    int64
}

// convPass is one of the three computations that cuDNN has kernels for.
type convPass int

const (
	forwardPass convPass = iota
	inputPass
	weightPass
)

// space is the workspace of a pass. It reports whether that convolution was
// measured or follows from a rule without exception.
func (c *Convolution) space(p convPass) (bytes int64, sure bool) {
	if c.Native() {
		return 0, true
	}
	k := c.canonical()
	if c.Transposed && p != weightPass {
		p = inputPass - p
	}
	if known := convTrees().known[k.fingerprint()][p]; known > 0 {
		return known - 1, true
	}
	if p != inputPass && k.cutsPatches() {
		patches := newPatches(k.Type, k.X, k.W, k.Y)
		if p == forwardPass {
			return patches.forward(), false
		}
		return patches.backward(), false
	}
	if p == weightPass && k.spreadsChannels() {
		return 4 * k.Type.Size() * (product(k.X) + product(k.Y)), false
	}
	return k.guess(p), false
}

// spreadsChannels reports whether the kernel that sums the gradient of the weight
// copies images with four channels for one. It was seen in fp32 for large kernels
// with every channel apart, as ConvNeXt's first stages have them.
func (c *Convolution) spreadsChannels() bool {
	const largeKernel, manyChannels = 7, 384
	return c.ChannelsLast && c.Type == Float32 && c.Groups > 1 && c.Groups == c.X[1] && c.X[1] < manyChannels &&
		c.W[2] >= largeKernel && product(c.Stride) == 1
}

// cutsPatches reports whether the convolution is one that the rules of PatchConv
// were found for.
func (c *Convolution) cutsPatches() bool {
	return len(c.X) == 4 && c.X[1] <= 8 && c.Groups == 1 && !c.ChannelsLast &&
		slices.Equal(c.Stride, c.W[2:]) && min(c.W[2], c.W[3]) >= 14 &&
		product(c.Dilation) == 1 && c.Padding[0] == 0 && c.Padding[1] == 0
}

// Native reports whether PyTorch runs the convolution with kernels of its own,
// which need no workspace: those of every channel apart, unless the channels
// come last or cuDNN may be faster in fp16.
func (c *Convolution) Native() bool {
	if c.Transposed || c.ChannelsLast || c.Groups == 1 || c.Groups != c.X[1] {
		return false
	}
	k := c.canonical()
	return c.Type != Float16 || len(k.X) == 5 || k.X[1] < 32 || product(k.Dilation) > 1 ||
		k.Stride[0] != k.Stride[1] && k.X[2] > 1
}

// canonical is c as cuDNN sees it: images of two or three dimensions, and a
// transposed convolution as the gradient of the input of another.
func (c *Convolution) canonical() *Convolution {
	k := *c
	if c.Transposed {
		k.X, k.Y, k.Transposed = c.Y, c.X, false
	}
	if len(k.X) == 3 {
		row := func(s []int64) []int64 { return []int64{s[0], s[1], 1, s[2]} }
		k.X, k.W, k.Y = row(k.X), row(k.W), row(k.Y)
		k.Stride = []int64{1, c.Stride[0]}
		k.Padding = []int64{0, c.Padding[0]}
		k.Dilation = []int64{1, c.Dilation[0]}
	}
	return &k
}

// fingerprint tells convolutions apart.
func (c *Convolution) fingerprint() uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	add := func(v int64) { h = (h ^ uint64(v)) * 1099511628211 }
	add(int64(c.Type))
	if c.ChannelsLast {
		add(1)
	}
	for _, s := range [][]int64{c.X, c.W, c.Y, c.Stride, c.Padding, c.Dilation, {c.Groups}} {
		for _, v := range s {
			add(v)
		}
	}
	return h
}

func product(s []int64) int64 {
	n := int64(1)
	for _, v := range s {
		n *= v
	}
	return n
}
