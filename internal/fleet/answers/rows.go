package answers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/present/table"
)

// Rows are the rows of an answer. In JSON each is an object; what is not known is
// null.
type Rows struct {
	columns []Column
	all     [][]Value
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.all) }

// Row returns the values of a row, in the order of the columns.
func (r *Rows) Row(i int) []Value { return r.all[i][:len(r.columns)] }

// MarshalJSON writes the fields of a row in the order of the columns.
func (r Rows) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i := range r.all {
		out = r.appendJSON(out, i)
	}
	return append(out, ']'), nil
}

// appendJSON writes a row behind those before it.
func (r *Rows) appendJSON(out []byte, i int) []byte {
	if i > 0 {
		out = append(out, ',')
	}
	out = append(out, '{')
	for j, v := range r.Row(i) {
		if j > 0 {
			out = append(out, ',')
		}
		out = appendText(out, r.columns[j].Name)
		out = append(out, ':')
		out = r.columns[j].appendJSON(out, v)
	}
	return append(out, '}')
}

// WriteJSON writes the document row by row: a table of a large fleet is many times
// as long as what it is made from.
func (d *QueryDocument) WriteJSON(w io.Writer) error {
	frame := *d
	frame.Rows = Rows{columns: d.Columns}
	text, err := json.Marshal(&frame)
	if err != nil {
		return err
	}
	before, after, found := bytes.Cut(text, []byte(`"rows":[]`)) // no text has these quotes
	if !found {
		return errors.New("a table without rows")
	}
	after = bytes.Clone(after)
	out := append(before, `"rows":[`...)
	for i := range d.Rows.all {
		if out = d.Rows.appendJSON(out, i); len(out) > 1<<16 {
			if _, err := w.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	_, err = w.Write(append(append(out, ']'), after...))
	return err
}

func (c *Column) appendJSON(out []byte, v Value) []byte {
	switch {
	case !v.Known:
		return append(out, "null"...)
	case c.Kind == Text:
		return appendText(out, v.Text)
	case c.Kind == Bool:
		return strconv.AppendBool(out, v.N != 0)
	}
	return strconv.AppendInt(out, v.N, 10)
}

func appendText(out []byte, s string) []byte {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) }) < 0 {
		return append(append(append(out, '"'), s...), '"') // nearly all of them, much faster
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // every text can be written
	}
	return append(out, text...)
}

// UnmarshalJSON reads a document back.
func (d *QueryDocument) UnmarshalJSON(data []byte) error {
	var raw struct {
		Columns []Column                     `json:"columns"`
		Matched int                          `json:"matched"`
		Total   int                          `json:"total"`
		Rows    []map[string]json.RawMessage `json:"rows"`
		Notes   []string                     `json:"notes"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*d = QueryDocument{Columns: raw.Columns, Matched: raw.Matched, Total: raw.Total, Rows: Rows{columns: raw.Columns}, Notes: raw.Notes}
	for _, fields := range raw.Rows {
		row := make([]Value, len(d.Columns))
		for i, c := range d.Columns {
			var err error
			if row[i], err = c.fromJSON(fields[c.Name]); err != nil {
				return err
			}
		}
		d.Rows.all = append(d.Rows.all, row)
	}
	return nil
}

func (c *Column) fromJSON(field json.RawMessage) (v Value, err error) {
	if len(field) == 0 || bytes.Equal(field, []byte("null")) {
		return v, nil
	}
	v.Known = true
	switch c.Kind {
	case Text:
		err = json.Unmarshal(field, &v.Text)
	case Bool:
		yes := false
		err = json.Unmarshal(field, &yes)
		v = boolValue(yes)
	default:
		err = json.Unmarshal(field, &v.N)
	}
	return v, err
}

// WriteParquet writes the rows as a Parquet file: texts, and 64-bit integers for
// all other kinds.
func (d *QueryDocument) WriteParquet(w io.Writer) error {
	columns := make([]table.Column, len(d.Columns))
	for i, c := range d.Columns {
		columns[i] = table.Column{Name: c.Name, Text: c.Kind == Text}
	}
	out := table.NewParquet(w, columns)
	cells := make([]table.Cell, len(columns))
	for row := range d.Rows.all {
		for i, v := range d.Rows.Row(row) {
			switch {
			case !v.Known:
				cells[i] = table.Cell{}
			case d.Columns[i].Kind == Text:
				cells[i] = table.Text(v.Text)
			default:
				cells[i] = table.Int(v.N)
			}
		}
		out.Row(cells)
	}
	return out.Close()
}
