package oracle

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
)

// OpKind says what an operation does.
type OpKind uint8

// The operations of recordings.
const (
	OpAlloc        OpKind = iota // a: allocate tensor ID of Size bytes on Stream
	OpFree                       // f: drop tensor ID
	OpRecordStream               // r: record_stream of tensor ID on Stream
	OpEmptyCache                 // e
	OpNewPool                    // newpool: MemPool ID of kind Text
	OpEnterPool                  // enter: use_mem_pool(ID) begins
	OpExitPool                   // exit: use_mem_pool(ID) ends
	OpDeletePool                 // delpool
	OpBeginCapture               // capbegin: capture of graph ID, in the pool of graph Share if Shared
	OpEndCapture                 // capend
	OpDeleteGraph                // delgraph
	OpConfigure                  // set: settings changed to Text
	OpFraction                   // frac: memory fraction changed
	OpSynchronize                // sync: the device is waited for; the allocator is not called
	OpEnd                        // end of the run
	OpException                  // EXC: PyTorch raised Text: Detail
	numOpKinds
)

var opNames = [numOpKinds]string{
	"a", "f", "r", "e", "newpool", "enter", "exit", "delpool",
	"capbegin", "capend", "delgraph", "set", "frac", "sync", "end", "EXC",
}

// Op is one recorded operation. Which fields count depends on the kind.
type Op struct {
	Kind     OpKind
	Failed   bool   // OpAlloc: OutOfMemoryError
	Shared   bool   // OpBeginCapture: Share holds
	Stream   int    // position in Recording.Streams
	ID       uint64 // number of the tensor, pool or graph
	Size     uint64
	Addr     uint64       // OpAlloc: the address PyTorch returned
	Share    uint64       // OpBeginCapture: graph whose pool is shared
	Pool     alloc.PoolID // OpNewPool: the id PyTorch gave the pool
	Fraction float64
	Text     string
	Detail   string
}

// String puts the operation into words.
func (o Op) String() string {
	switch o.Kind {
	case OpAlloc:
		return fmt.Sprintf("allocate tensor %d of %d bytes on stream %d", o.ID, o.Size, o.Stream)
	case OpFree:
		return fmt.Sprintf("free tensor %d", o.ID)
	case OpRecordStream:
		return fmt.Sprintf("record_stream of tensor %d on stream %d", o.ID, o.Stream)
	case OpEmptyCache:
		return "empty_cache"
	case OpNewPool:
		return fmt.Sprintf("make MemPool %d (%s)", o.ID, o.Text)
	case OpEnterPool:
		return fmt.Sprintf("enter MemPool %d", o.ID)
	case OpExitPool:
		return fmt.Sprintf("leave MemPool %d", o.ID)
	case OpDeletePool:
		return fmt.Sprintf("delete MemPool %d", o.ID)
	case OpBeginCapture:
		if o.Shared {
			return fmt.Sprintf("begin capture of graph %d in the pool of graph %d", o.ID, o.Share)
		}
		return fmt.Sprintf("begin capture of graph %d", o.ID)
	case OpEndCapture:
		return fmt.Sprintf("end capture of graph %d", o.ID)
	case OpDeleteGraph:
		return fmt.Sprintf("delete graph %d", o.ID)
	case OpConfigure:
		return fmt.Sprintf("set %q", o.Text)
	case OpFraction:
		return fmt.Sprintf("set memory fraction %v", o.Fraction)
	case OpSynchronize:
		return "synchronize"
	case OpEnd:
		return "end of the run"
	case OpException:
		return "exception in PyTorch: " + o.Text
	}
	return fmt.Sprintf("operation of kind %d", o.Kind)
}
