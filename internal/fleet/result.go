package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/hub"
)

// question is one that every file is asked. Its version is raised when the
// answers change, so that ashlar fleet redo asks it again.
type question struct {
	name    string
	version int
}

// The questions, and the version of what is taken from their answers.
var (
	statsQuestion   = question{"stats", 1}
	explainQuestion = question{"explain", 1}
	questions       = []question{statsQuestion, explainQuestion}
)

const rowVersion = 1

// subject is where the answer about a file is.
func (q question) subject(hash string) string {
	return hash + "_" + q.name + "_" + strconv.Itoa(q.version)
}

// versions names those of everything that a row is made from.
func versions() string {
	s := strconv.Itoa(rowVersion)
	for _, q := range questions {
		s += "-" + strconv.Itoa(q.version)
	}
	return s
}

// rowSubject is where the row of a file is. A file with a row has all answers.
func rowSubject(hash string) string { return hash + "_" + versions() }

// Row is what the questions over many files need of one.
type Row struct {
	// What the file says of itself.
	Run     string            `json:"run,omitempty"`
	Attempt *int64            `json:"attempt,omitempty"`
	Rank    *int64            `json:"rank,omitempty"`
	World   *int64            `json:"world,omitempty"`
	Commit  string            `json:"commit,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
	Host    string            `json:"host,omitempty"`

	Error   string          `json:"error,omitempty"` // why there is no answer
	Aside   bool            `json:"aside,omitempty"` // it was the end of its workers
	Summary answers.Summary `json:"summary"`
}

// Analysis is all that is stored about a file.
type Analysis struct {
	Documents map[string]Document // by question
	Row       Row
}

// Document is an answer as JSON, or why there is none.
type Document struct {
	JSON  []byte
	Error string
}

// A document is stored behind one byte.
const (
	storedJSON   = 'z' // compressed
	storedError  = 'e' // the text
	storedObject = 'o' // the name of an object, which is the compressed JSON
)

// maxAnswer is how long an answer may be, compressed or not.
const maxAnswer = 1 << 30

var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err) // the options are written here
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxAnswer))
		if err != nil {
			panic(err)
		}
		return d
	})
)

// commit stores an analysis. What is there stays: another worker was faster.
func (st *Store) commit(ctx context.Context, hash string, a *Analysis) error {
	for _, q := range questions {
		if err := st.commitDocument(ctx, q.subject(hash), a.Documents[q.name]); err != nil {
			return err
		}
	}
	if err := create(ctx, st.rows, rowSubject(hash), a.Row); err != nil && !errors.Is(err, hub.ErrMoved) {
		return err
	}
	return nil
}

func (st *Store) commitDocument(ctx context.Context, subject string, d Document) error {
	data := append([]byte{storedError}, d.Error...)
	if d.Error == "" {
		data = encoder().EncodeAll(d.JSON, []byte{storedJSON})
	}
	if most := st.hub.MaxMessage() - 1024; len(data) > most { // beside the subject and the header
		if err := st.objects.Put(ctx, subject, bytes.NewReader(data[1:])); err != nil {
			return err
		}
		data = append([]byte{storedObject}, subject...)
	}
	if _, err := st.results.Append(ctx, subject, data, 0); err != nil && !errors.Is(err, hub.ErrMoved) {
		return err
	}
	return nil
}

// document reads an answer of a file that has a row.
func (st *Store) document(ctx context.Context, hash string, q question) ([]byte, error) {
	m, err := st.results.Last(ctx, q.subject(hash))
	if errors.Is(err, hub.ErrNone) {
		return nil, fmt.Errorf("%.12s: %w", hash, damagedAnswer(q))
	}
	if err != nil {
		return nil, err
	}
	return st.unpack(ctx, m)
}

func (st *Store) unpack(ctx context.Context, m hub.Message) ([]byte, error) {
	if len(m.Data) == 0 {
		return nil, fmt.Errorf("the result %s is empty", m.Subject)
	}
	kind, data := m.Data[0], m.Data[1:]
	switch kind {
	case storedError:
		return nil, errors.New(string(data))
	case storedObject:
		var err error
		if data, err = st.object(ctx, string(data)); err != nil {
			return nil, err
		}
	}
	return decoder().DecodeAll(data, nil)
}

// object reads an answer that was too long for a message.
func (st *Store) object(ctx context.Context, name string) ([]byte, error) {
	r, err := st.objects.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if len(data) > maxAnswer {
		return nil, fmt.Errorf("the answer %.20s has more than %d MiB", name, maxAnswer>>20)
	}
	return data, err
}
