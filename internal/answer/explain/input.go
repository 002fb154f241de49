package explain

import (
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// Input is what an explanation is made from. All of it may be missing but one
// of Run, Message, Stats and Refusal.
type Input struct {
	Run   *run.Checked
	Facts *recorder.Facts // what the recorder wrote beside the snapshot

	Message *message.OOM
	Stats   *stats.Dump
	Refusal *message.Refusal // the error of a library; explained if there is no Message
	Log     *Log             // what the log says beside these; nil if nothing

	// Limit is the cap on reserved bytes, if the user knows it; 0 if not.
	Limit uint64
	// Source is the directory with the user's program; "" if no file of it may be
	// opened.
	Source string
	// Full asks for everything, however long it takes.
	Full bool
	// Points is how long the curves of changed programs are; 0 makes none.
	Points int
	// Believed is the text of PYTORCH_CUDA_ALLOC_CONF that the user believes to
	// be in force; nil if they did not say.
	Believed *string
}
