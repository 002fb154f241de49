package model

import "strings"

// DType is the type of a tensor's elements, as far as a job chooses it.
type DType string

// The types of weights.
const (
	FP32 DType = "fp32"
	BF16 DType = "bf16"
	FP16 DType = "fp16"
)

// Mode is what the model does.
type Mode string

// The modes.
const (
	Train    Mode = "train"
	Generate Mode = "generate"
)

// Optimizer is torch's optimizer and which of its implementations.
type Optimizer string

// The optimizers.
const (
	AdamWFused   Optimizer = "adamw-fused"
	AdamWForeach Optimizer = "adamw-foreach"
	AdamW        Optimizer = "adamw" // one tensor at a time
	AdamFused    Optimizer = "adam-fused"
	AdamForeach  Optimizer = "adam-foreach"
	Adam         Optimizer = "adam"
	SGD          Optimizer = "sgd"          // foreach, without momentum
	SGDMomentum  Optimizer = "sgd-momentum" // foreach
	SGDFused     Optimizer = "sgd-momentum-fused"
	Adafactor    Optimizer = "adafactor"
)

// Those of bitsandbytes, in transformers' words. The states of paged ones are
// managed memory, which the driver moves between the GPU and the host.
const (
	AdamW8bit       Optimizer = "adamw-8bit"
	PagedAdamW8bit  Optimizer = "paged-adamw-8bit"
	PagedAdamW32bit Optimizer = "paged-adamw-32bit"
	Lion8bit        Optimizer = "lion-8bit"
	Lion32bit       Optimizer = "lion-32bit"
	PagedLion8bit   Optimizer = "paged-lion-8bit"
	PagedLion32bit  Optimizer = "paged-lion-32bit"
	RMSprop8bit     Optimizer = "rmsprop-bnb-8bit"
	RMSprop32bit    Optimizer = "rmsprop-bnb"
)

// BitsAndBytes reports whether the optimizer is one of bitsandbytes.
func (o Optimizer) BitsAndBytes() bool {
	return o.Lion() || o.EightBit() || o.Paged() || o == RMSprop32bit
}

// EightBit reports whether its states have eight bits.
func (o Optimizer) EightBit() bool { return strings.HasSuffix(string(o), "-8bit") }

// Paged reports whether its states are managed memory.
func (o Optimizer) Paged() bool { return strings.HasPrefix(string(o), "paged-") }

// Lion reports whether it is Lion, which has one state.
func (o Optimizer) Lion() bool { return strings.Contains(string(o), "lion-") }

// Offload is what a job keeps on the host, in pinned memory.
type Offload struct {
	Optimizer  bool // states, master weights and gradients; the step runs on the CPU
	Parameters bool // the shards of the weights
}

// Attention is how attention is computed.
type Attention string

// The ways. SDPA is what torch picks for the shapes.
const (
	SDPA      Attention = "sdpa"
	Flash     Attention = "flash"
	Efficient Attention = "efficient"
	CuDNN     Attention = "cudnn"
	Math      Attention = "math"
	Eager     Attention = "eager"
)

// Mask is which padding the batch has.
type Mask string

// The masks. Ones is a mask without padding.
const (
	NoMask    Mask = "none"
	LeftMask  Mask = "left"
	RightMask Mask = "right"
	OnesMask  Mask = "ones"
)

// ZeroGrad is what becomes of the gradients after a step.
type ZeroGrad string

// The variants.
const (
	ZeroNone   ZeroGrad = "none"   // set to None after the optimizer's step
	ZeroKeep   ZeroGrad = "keep"   // filled with zeros
	ZeroBefore ZeroGrad = "before" // set to None before the forward pass
)

// Save is how a checkpoint of the state is written after each step.
type Save string

// The ways: not at all, by torch.save(state_dict()), after a copy on the GPU,
// through pinned host memory.
const (
	SaveNone  Save = "none"
	SaveTorch Save = "torch"
	SaveSync  Save = "sync"
	SaveAsync Save = "async"
)

// Recompute says which layers are computed again in the backward pass.
type Recompute struct {
	// Mode is none, full (each layer by itself), group (Groups), or selective
	// (each layer, but matrix products and attention are kept).
	Mode string
	// Groups are the lengths of runs of layers that are recomputed together; a
	// negative length is a run that is not recomputed.
	Groups []int
	// Reentrant is torch's older checkpoint, whose recomputation is a backward
	// pass within the backward pass.
	Reentrant bool
}

// LoRA are low-rank adapters on frozen weights.
type LoRA struct {
	Rank    int      // 0 is none
	Targets []string // names of Linears; none means all but the head
	DType   DType    // empty: the weights'
	// PEFT: the adapters are PEFT's. Otherwise they are a sum of two products
	// with the type of the weights.
	PEFT    bool
	Dropout bool // before the first product of PEFT's
}

// Evaluation is what Trainer does after a step.
type Evaluation struct {
	Batch int64 // 0: there is none
	Kept  int   // batches whose outputs stay on the GPU for compute_metrics
	// Moved is after how many batches they go to the host and the cache is emptied
	// (eval_accumulation_steps); 0: at the end.
	Moved int
}

// Shard is how the work is spread over ranks.
type Shard struct {
	DDP, FSDP           int
	BucketView          bool // DDP: gradients are views into the buckets
	Zero, ZeroStage     int  // ranks and stage of DeepSpeed's ZeRO
	Tensor, Sequence    int
	Pipeline, Context   int
	Expert              int
	ReshardAfterForward bool
	// BuildSharded: each rank makes only its part of the weights, where they are
	// divided. Otherwise every GPU holds the whole model first.
	BuildSharded bool
	// FSDP's mixed precision: the type that parameters are gathered in and the
	// type that gradients are reduced in; empty is the weights'.
	ParamDType, ReduceDType DType
}

// Job is one run of a model on one GPU.
type Job struct {
	Model *Model

	Mode      Mode
	Batch     int64
	Seq       int64 // of the prompt when generating
	TargetSeq int64 // of an encoder-decoder's target

	DType    DType
	Autocast bool
	Quant    *Quant // nil if the weights are not quantised

	Optimizer Optimizer
	Master    bool
	ZeroGrad  ZeroGrad
	Clip      bool // the norm of the gradients is clipped
	Steps     int  // 3

	Accumulate int
	Attention  Attention
	Mask       Mask
	Recompute  Recompute
	LossChunk  int64 // tokens whose loss is computed at a time; 0 is all
	HoldOutput bool  // the outputs, logits among them, live until the next step
	UseCache   bool  // a training step that builds a cache

	// Trainer: the loop is that of transformers' Trainer, over accelerate.
	Trainer    bool
	Smoothing  bool // of labels, by Trainer
	EmptyCache int  // in every so many steps, after the forward pass (torch_empty_cache_steps)
	Evaluation Evaluation

	LoRA    LoRA
	Shard   Shard
	Offload Offload
	Save    Save

	Tokens      int64 // to generate
	StaticCache int64 // length of a static cache; 0 is a dynamic one
	// GenerateCall: the tokens come from transformers' generate(), greedily,
	// with the batch's mask and as many of them whatever the model says;
	// otherwise from a loop of forward calls.
	GenerateCall bool

	// Workspace is what cuBLAS takes per thread and stream.
	Workspace int64
	// Capability is the compute capability, e.g. 90.
	Capability int
}
