package table_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/ashlar-mem/ashlar/internal/present/table"
)

var columns = []table.Column{{Name: "index"}, {Name: "change"}, {Name: "site", Text: true}, {Name: "never", Text: true}}

// fill writes rows that have all that is odd: nulls, negative numbers, texts that
// must be quoted.
func fill(w table.Writer, n int) error {
	cells := make([]table.Cell, 4)
	for i := range n {
		cells[0], cells[1], cells[2] = table.Int(int64(i)), table.Cell{}, table.Cell{}
		if i%3 > 0 {
			cells[1] = table.Int(int64(-i) << 30)
		}
		if s, ok := site(i); ok {
			cells[2] = table.Text(s)
		}
		w.Row(cells)
	}
	return w.Close()
}

func site(i int) (string, bool) {
	switch i % 5 {
	case 0:
		return "", false
	case 1:
		return "", true
	case 2:
		return fmt.Sprintf("a \"b\", c\r\nd %d", i%700), true
	case 3:
		return "train.py:33 <module>", true
	}
	return "ünï\xffcode", true
}

func TestParquet(t *testing.T) {
	type row struct {
		Index  *int64  `parquet:"index,optional"`
		Change *int64  `parquet:"change,optional"`
		Site   *string `parquet:"site,optional"`
		Never  *string `parquet:"never,optional"`
	}
	for _, n := range []int{0, 1, 7, 8, 9, 70_000, 1 << 17} {
		var b bytes.Buffer
		if err := fill(table.NewParquet(&b, columns), n); err != nil {
			t.Fatal(err)
		}
		got, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		if len(got) != n {
			t.Fatalf("%d rows of %d", len(got), n)
		}
		for i, r := range got {
			want, ok := site(i)
			want = strings.ToValidUTF8(want, "\uFFFD")
			switch {
			case r.Index == nil || *r.Index != int64(i), (r.Change != nil) != (i%3 > 0), r.Change != nil && *r.Change != int64(-i)<<30, r.Never != nil:
				t.Fatalf("of %d rows no. %d is %+v", n, i, r)
			case (r.Site != nil) != ok || ok && *r.Site != want:
				t.Fatalf("of %d rows no. %d has %v, want %q", n, i, r.Site, want)
			}
		}
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := fill(table.NewCSV(&b, columns), 5000); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(got) != 5001 || strings.Join(got[0], " ") != "index change site never" {
		t.Fatalf("%d lines, %v, %v", len(got), got[0], err)
	}
	for i, line := range got[1:] {
		want, _ := site(i)
		want = strings.ReplaceAll(strings.ToValidUTF8(want, "\uFFFD"), "\r\n", "\n") // as the reader has it
		change := ""
		if i%3 > 0 {
			change = fmt.Sprint(int64(-i) << 30)
		}
		if line[0] != fmt.Sprint(i) || line[1] != change || line[2] != want || line[3] != "" {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// A text that a spreadsheet would run is none any more, and numbers stay.
func TestCSVFormulas(t *testing.T) {
	var b bytes.Buffer
	w := table.NewCSV(&b, columns)
	for _, s := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\tx", "x=1"} {
		w.Row([]table.Cell{table.Int(1), table.Int(-5), table.Text(s), {}})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "x=1"} {
		if got[i+1][2] != want || got[i+1][1] != "-5" {
			t.Errorf("line %d is %q, want %q", i, got[i+1], want)
		}
	}
}

type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteError(t *testing.T) {
	for name, begin := range map[string]func(io.Writer, []table.Column) table.Writer{"csv": table.NewCSV, "parquet": table.NewParquet} {
		if err := fill(begin(&full{100_000}, columns), 200_000); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Texts that are nearly all different, with gaps and some that come again.
func TestParquetSingle(t *testing.T) {
	type row struct {
		Hash *string `parquet:"hash,optional"`
	}
	text := func(i int) (string, bool) {
		if i > 60_000 && i%3 == 0 {
			i = 5
		}
		return fmt.Sprintf("%x", i*7919), i%7 > 0
	}
	const n = 140_000 // three groups
	var b bytes.Buffer
	w := table.NewParquet(&b, []table.Column{{Name: "hash", Text: true}})
	for i := range n {
		cell := table.Cell{}
		if s, known := text(i); known {
			cell = table.Text(s)
		}
		w.Row([]table.Cell{cell})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(got) != n {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i, r := range got {
		if want, known := text(i); (r.Hash != nil) != known || known && *r.Hash != want {
			t.Fatalf("row %d: %v, want %q, %v", i, r.Hash, want, known)
		}
	}
}
