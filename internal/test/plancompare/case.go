package plancompare

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// Case is what was run and what was measured.
type Case struct {
	Name string `json:"case"`
	Spec Spec   `json:"spec"`
	// Config is the model's config.json as far as it was recorded.
	Config map[string]json.RawMessage `json:"config"`

	Params          int64 `json:"params"`
	AllocAfterBuild int64 `json:"alloc_after_build"`
	// AllocBeforeStep is what was allocated before step 3; 0 if tokens were
	// generated.
	AllocBeforeStep int64 `json:"alloc_before_step,omitempty"`
	// The peaks are of step 3, or of the whole generation.
	PeakAllocated int64 `json:"peak_allocated"`
	PeakReserved  int64 `json:"peak_reserved"`
	PeakRequested int64 `json:"peak_requested"`
	Retries       int64 `json:"retries,omitempty"`

	Named   []Parameter `json:"named,omitempty"`
	Buffers []Parameter `json:"buffers,omitempty"`
}

// Spec is how a case was run, in the words of the recording script.
type Spec struct {
	M map[string]json.RawMessage `json:"m"` // fields of the config; fam is the model_type

	B  int64 `json:"b"`
	S  int64 `json:"s"`
	TS int64 `json:"ts,omitempty"`

	DType    string `json:"dtype,omitempty"`
	Autocast bool   `json:"autocast,omitempty"`
	Opt      string `json:"opt,omitempty"`
	Zero     string `json:"zero,omitempty"`
	Accum    int    `json:"accum,omitempty"`
	Clip     bool   `json:"clip,omitempty"`
	Ckpt     string `json:"ckpt,omitempty"`
	Attn     string `json:"attn,omitempty"`
	SDPA     string `json:"sdpa,omitempty"`
	Mask     string `json:"mask,omitempty"`
	Chunk    int64  `json:"chunk,omitempty"`
	Cache    bool   `json:"cache,omitempty"`
	Hold     bool   `json:"hold,omitempty"`

	LoRA      int    `json:"lora,omitempty"`
	LoRADType string `json:"lora_dtype,omitempty"`
	Dist      string `json:"dist,omitempty"`
	World     int    `json:"world,omitempty"` // ranks of a process group that does nothing; 0 is one real rank
	Save      string `json:"save,omitempty"`

	Gen    int64 `json:"gen,omitempty"`
	Static int64 `json:"static,omitempty"`
	HFGen  bool  `json:"hfgen,omitempty"`
}

// UnmarshalJSON refuses options that Spec does not have: a case that is run
// without one of its options would be compared with something else.
func (s *Spec) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	type plain Spec
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	known, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var have map[string]json.RawMessage
	if err := json.Unmarshal(known, &have); err != nil {
		return err
	}
	for k, v := range all {
		if _, ok := have[k]; !ok && !slices.Contains([]string{"null", "false", "0", `""`}, string(v)) {
			return fmt.Errorf("the spec has %s: %s, which is not known here", k, v)
		}
	}
	return nil
}

// Parameter is a named tensor of a model. It is written as [name, [shape...],
// dtype].
type Parameter struct {
	Name  string
	Shape []int64
	DType string
}

// UnmarshalJSON reads the triple.
func (p *Parameter) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&p.Name, &p.Shape, &p.DType})
}

// MarshalJSON writes the triple.
func (p Parameter) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.Name, p.Shape, p.DType})
}

// The files of which only the peaks were measured: the fourteen cases that the
// planner was begun with, and options of training in combinations.
const (
	FirstCases    = "measured.jsonl"
	TrainingCases = "measured_train.jsonl"
)

// Measured reads the cases of which only the peaks were measured. [Blind] has
// those that were predicted before they were measured.
func Measured() ([]Case, error) {
	first, err := MeasuredIn(FirstCases)
	if err != nil {
		return nil, err
	}
	training, err := MeasuredIn(TrainingCases)
	return append(first, training...), err
}

// MeasuredIn reads the cases of one file in testdata/plan.
func MeasuredIn(file string) ([]Case, error) { return readLines[Case](file) }

// readLines reads a file of testdata/plan that has a JSON document in each line.
func readLines[T any](file string) ([]T, error) {
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	return jsonl.Read[T](filepath.Join(dir, file))
}
