package table

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Column is a column of a table: of integers, or of texts.
type Column struct {
	Name string
	Text bool
}

// Cell is a value of a column. The zero Cell is null.
type Cell struct {
	known bool
	n     int64
	text  string
}

// Int returns a cell of a column of integers.
func Int(n int64) Cell { return Cell{known: true, n: n} }

// Text returns a cell of a column of texts. Bytes that are no UTF-8 are replaced.
func Text(s string) Cell {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return Cell{known: true, text: s}
}

// Writer takes the rows of a table one after the other. Row keeps the first error
// of writing for Close.
type Writer interface {
	Row(cells []Cell)
	Close() error // writes what is left
}

// csvWriter writes a table as RFC 4180 has it.
type csvWriter struct {
	out     *bufio.Writer
	columns []Column
	buf     []byte
}

// NewCSV begins a table with a line of names. Null is an empty cell. A text that a
// spreadsheet would take for a formula begins with an apostrophe.
func NewCSV(w io.Writer, columns []Column) Writer {
	c := &csvWriter{out: bufio.NewWriterSize(w, 64<<10), columns: columns}
	for i, column := range columns {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = append(c.buf, column.Name...)
	}
	c.line()
	return c
}

func (c *csvWriter) line() {
	c.buf = append(c.buf, "\r\n"...)
	c.out.Write(c.buf) // the buffer keeps the error
	c.buf = c.buf[:0]
}

func (c *csvWriter) Row(cells []Cell) {
	for i := range cells {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		switch cell := &cells[i]; {
		case !cell.known:
		case c.columns[i].Text:
			c.buf = appendText(c.buf, cell.text)
		default:
			c.buf = strconv.AppendInt(c.buf, cell.n, 10)
		}
	}
	c.line()
}

func (c *csvWriter) Close() error { return c.out.Flush() }

// appendText writes a text as one cell.
func appendText(b []byte, s string) []byte {
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		s = "'" + s
	}
	if s != "" && !strings.ContainsAny(s, ",\"\r\n") {
		return append(b, s...)
	}
	b = append(b, '"') // an empty text too: it is not null
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}
