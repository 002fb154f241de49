package fleet

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/hub"
)

// A server has the rows of all files in memory and answers for those who would
// have to read them first.
const askSubject = "ashlar.ask"

// Question is one over all files. Exactly one of its fields is given.
type Question struct {
	Ranks  *RanksQuestion        `json:"ranks,omitempty"`
	Growth *GrowthQuestion       `json:"growth,omitempty"`
	Causes *CausesQuestion       `json:"causes,omitempty"`
	Status *StatusQuestion       `json:"status,omitempty"`
	Query  *answers.QueryOptions `json:"query,omitempty"`
	Table  *answers.QueryOptions `json:"table,omitempty"` // as Query; the answer is a [TableFile]
}

// TableFile is the answer to a query as a Parquet file, which is a small part of
// what its document is.
type TableFile struct {
	Parquet []byte   `json:"parquet"`
	Rows    int      `json:"rows"`
	Columns int      `json:"columns"`
	Notes   []string `json:"notes"`
}

// WrittenTable is what ashlar fleet query -o FILE --json prints.
type WrittenTable struct {
	File    string   `json:"file"`
	Rows    int      `json:"rows"`
	Columns int      `json:"columns"`
	Notes   []string `json:"notes"`
}

// RanksQuestion asks for the odd ranks of a run.
type RanksQuestion struct {
	Run string `json:"run"`
}

// GrowthQuestion asks for the commits that grew; of all runs if Run is empty.
type GrowthQuestion struct {
	Run string `json:"run"`
}

// CausesQuestion asks for the causes of failures since a time.
type CausesQuestion struct {
	SinceUS int64 `json:"since_us"`
}

// StatusQuestion asks how the fleet is.
type StatusQuestion struct{}

// answer answers from the files that are known.
func (x *Index) answer(ctx context.Context, q *Question) (any, error) {
	switch {
	case q.Ranks != nil:
		return answers.Ranks(x.Entries(), q.Ranks.Run)
	case q.Growth != nil:
		return answers.Growth(ctx, x.Entries(), q.Growth.Run)
	case q.Causes != nil:
		d, err := answers.Causes(ctx, x.Entries(), q.Causes.SinceUS)
		if err != nil {
			return nil, err
		}
		d.Notes = append(d.Notes, x.waiting()...)
		return d, nil
	case q.Status != nil:
		return x.status(ctx)
	case q.Query != nil:
		return x.query(q.Query)
	case q.Table != nil:
		d, err := x.query(q.Table)
		if err != nil {
			return nil, err
		}
		var file bytes.Buffer
		err = d.WriteParquet(&file)
		return TableFile{file.Bytes(), d.Rows.Len(), len(d.Columns), d.Notes}, err
	}
	return nil, errors.New("the server does not know the question; update ashlar there")
}

func (x *Index) query(o *answers.QueryOptions) (*answers.QueryDocument, error) {
	asked, err := answers.NewQuery(*o)
	if err != nil {
		return nil, err
	}
	d := asked.Run(x.Entries())
	d.Notes = append(d.Notes, x.waiting()...)
	return d, nil
}

// waiting notes how many files no answer can speak of yet.
func (x *Index) waiting() []string {
	n := len(x.missing())
	if n == 0 {
		return nil
	}
	return []string{count(n, "file waits to be analysed and is", "files wait to be analysed and are") + " not counted: ashlar fleet serve or ashlar fleet work does it"}
}

// The first byte of a reply says what follows.
const (
	replyJSON   = 'j' // compressed
	replyError  = 'e' // a text
	replyObject = 'o' // the name of an object with what is too long for a message
)

// replyName begins the names of those objects.
const replyName = "answer-"

// askTime is how long a server may take to answer.
const askTime = 10 * time.Minute

// reply answers a question of another process.
func (x *Index) reply(ctx context.Context, question []byte) []byte {
	data, err := x.replyJSON(ctx, question)
	if err == nil && len(data) > x.store.hub.MaxMessage()-1024 {
		name := replyName + rand.Text()
		err = x.store.objects.Put(ctx, name, bytes.NewReader(data))
		data = append([]byte{replyObject}, name...)
	}
	if err != nil {
		return append([]byte{replyError}, err.Error()...)
	}
	return data
}

// fetchReply reads an answer that was too long, and removes it.
func (st *Store) fetchReply(ctx context.Context, name string) ([]byte, error) {
	data, err := st.object(ctx, name)
	if err != nil {
		return nil, err
	}
	return data, st.objects.Delete(ctx, name)
}

// dropReplies removes answers that nobody came for, as whoever asked was killed.
func (st *Store) dropReplies(ctx context.Context, age time.Duration) error {
	all, err := st.objects.List(ctx)
	for _, o := range all {
		if !strings.HasPrefix(o.Name, replyName) || time.Since(o.Time) <= age {
			continue
		}
		if e := st.objects.Delete(ctx, o.Name); !errors.Is(e, hub.ErrNone) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func (x *Index) replyJSON(ctx context.Context, question []byte) ([]byte, error) {
	var q Question
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, err
	}
	if err := x.Refresh(ctx); err != nil {
		return nil, err
	}
	a, err := x.answer(ctx, &q)
	if err != nil {
		return nil, err
	}
	if d, ok := a.(*answers.QueryDocument); ok {
		out := bytes.NewBuffer([]byte{replyJSON})
		z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
		if err == nil {
			err = d.WriteJSON(z)
		}
		if err == nil {
			err = z.Close()
		}
		return out.Bytes(), err
	}
	data, err := json.Marshal(a)
	return encoder().EncodeAll(data, []byte{replyJSON}), err
}

// Ask puts a question to the server of the fleet, or answers it here if none
// runs. The answer is its document as JSON.
func (st *Store) Ask(ctx context.Context, q Question) (json.RawMessage, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	reply, err := st.hub.Ask(ctx, askSubject, data, askTime)
	if errors.Is(err, hub.ErrNobody) {
		x, err := NewIndex(ctx, st)
		if err != nil {
			return nil, err
		}
		a, err := x.answer(ctx, &q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
	if err != nil {
		return nil, fmt.Errorf("the server of the fleet does not answer: %w", err)
	}
	if len(reply) > 0 && reply[0] == replyObject {
		if reply, err = st.fetchReply(ctx, string(reply[1:])); err != nil {
			return nil, err
		}
	}
	if len(reply) == 0 || reply[0] != replyJSON {
		return nil, errors.New(string(reply[min(1, len(reply)):]))
	}
	return decoder().DecodeAll(reply[1:], nil)
}
