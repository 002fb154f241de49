package cards

// Kind says how a figure is known.
type Kind string

// The kinds of figures.
const (
	Measured Kind = "measured" // by this project
	Reported Kind = "reported" // in public output that names the card, which the source names
	Estimate Kind = "estimate"
	Given    Kind = "given" // by whoever asks
)

// Card is a GPU.
type Card struct {
	Name    string   `json:"name"` // as --gpu takes it
	Title   string   `json:"title"`
	Aliases []string `json:"aliases,omitempty"`
	// SoldGB is the size in the card's name or brochure. A program sees less.
	SoldGB int `json:"sold_gb,omitempty"`
	// Family is what several cards of different sizes are called.
	Family string `json:"family,omitempty"`
	Vendor string `json:"vendor,omitempty"` // empty for NVIDIA
	// Taken says how [Parse] understood a text that does not name one card
	// exactly.
	Taken string `json:"-"`

	// TotalBytes is the memory that the driver reports to a program.
	TotalBytes  uint64 `json:"total_bytes"`
	Total       Kind   `json:"total"`
	TotalSource string `json:"total_source"`

	// ContextBytes are gone once CUDA is initialised. OutsideBytes are gone
	// outside PyTorch's allocator once a training step has run: the context,
	// loaded kernels and the handles of libraries.
	ContextBytes  uint64 `json:"context_bytes"`
	OutsideBytes  uint64 `json:"outside_bytes"`
	Context       Kind   `json:"context"`
	ContextSource string `json:"context_source"`

	Major int `json:"major"` // compute capability
	Minor int `json:"minor"`

	// BandwidthBytes is the card's published memory bandwidth per second, 0 if
	// unknown.
	BandwidthBytes uint64 `json:"bandwidth_bytes_per_s"`
	// Workspace is what PyTorch allocates for the BLAS library, where that does not
	// follow from the compute capability.
	Workspace uint64 `json:"workspace_bytes,omitempty"`
	// Date is when the figures were measured or looked up.
	Date string `json:"date,omitempty"`
}

// Maker is the name of who makes the card.
func (c Card) Maker() string {
	switch c.Vendor {
	case "amd":
		return "AMD"
	case "intel":
		return "Intel"
	}
	return "NVIDIA"
}

// cuBLAS workspaces of PyTorch 2.11 (CublasHandlePool.cpp): 8 pieces of 4 MiB
// on Hopper, 2 of 4 MiB and 8 of 16 KiB elsewhere. Blackwell got Hopper's size
// only after 2.11 was cut (pull request 175344 of 2026-02-19).
const (
	hopperWorkspace = 8 * 4096 << 10
	otherWorkspace  = 2*4096<<10 + 8*16<<10
)

// WorkspaceBytes is what PyTorch allocates for cuBLAS, once per handle and
// stream: a training step has two handles, one of the thread that runs the
// backward pass.
func (c Card) WorkspaceBytes() uint64 {
	switch {
	case c.Workspace > 0:
		return c.Workspace
	case c.Major == 9 && c.Minor == 0:
		return hopperWorkspace
	}
	return otherWorkspace
}

// AvailableBytes returns what is left for PyTorch's allocator in a training step.
func (c Card) AvailableBytes() uint64 { return c.TotalBytes - min(c.TotalBytes, c.OutsideBytes) }
