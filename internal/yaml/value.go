package yaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Kind is what a value is.
type Kind int

// The kinds of values.
const (
	Null Kind = iota
	Scalar
	List
	Map
)

// Value is a value in a file.
type Value struct {
	Kind    Kind
	Line    int
	Text    string // of a scalar
	Quoted  bool   // a scalar that is a text whatever it looks like
	Items   []Value
	Entries []Entry // in the order of the file
}

// Entry is one key of a mapping.
type Entry struct {
	Key   string
	Line  int
	Value Value
}

// seen are the keys of a mapping so far.
type seen map[string]struct{}

// twice notes a key and reports whether it was there.
func (s *seen) twice(key string) bool {
	if *s == nil {
		*s = seen{}
	}
	_, was := (*s)[key]
	(*s)[key] = struct{}{}
	return was
}

// Get returns the value of a key.
func (v *Value) Get(key string) (Value, bool) {
	for _, e := range v.Entries {
		if e.Key == key {
			return e.Value, true
		}
	}
	return Value{}, false
}

// Error is what is wrong with a file, and where.
type Error struct {
	Line int
	Why  string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// maxDepth is how deep values may be nested.
const maxDepth = 100

// ParseJSON reads JSON into the values of this package.
func ParseJSON(data []byte) (Value, error) {
	j := &jsonReader{data: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	j.decoder.UseNumber()
	v, err := j.value(0)
	if err == nil {
		if _, more := j.decoder.Token(); !errors.Is(more, io.EOF) {
			err = j.wrong("something follows after the value")
		}
	}
	return v, err
}

type jsonReader struct {
	data    []byte
	decoder *json.Decoder

	counted, lines int // bytes whose line ends were counted, and how many there were
}

// line returns the line that the decoder has come to.
func (j *jsonReader) line() int {
	to := min(int(j.decoder.InputOffset()), len(j.data))
	j.lines += bytes.Count(j.data[j.counted:to], []byte("\n"))
	j.counted = to
	return 1 + j.lines
}

func (j *jsonReader) wrong(why string) error { return &Error{j.line(), why} }

func (j *jsonReader) token() (json.Token, error) {
	t, err := j.decoder.Token()
	if err == nil {
		return t, nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at := min(int(syntax.Offset), len(j.data))
		return nil, &Error{1 + bytes.Count(j.data[:at], []byte("\n")), "not JSON: " + err.Error()}
	}
	return nil, j.wrong("the JSON ends too early")
}

func (j *jsonReader) value(depth int) (Value, error) {
	t, err := j.token()
	if err != nil {
		return Value{}, err
	}
	if depth > maxDepth {
		return Value{}, j.wrong("values are nested too deep")
	}
	v := Value{Line: j.line()}
	switch t := t.(type) {
	case nil:
	case bool:
		v.Kind, v.Text = Scalar, strconv.FormatBool(t)
	case json.Number:
		v.Kind, v.Text = Scalar, t.String()
	case string:
		v.Kind, v.Text, v.Quoted = Scalar, t, true
	case json.Delim:
		return j.nested(v, t, depth)
	}
	return v, nil
}

func (j *jsonReader) nested(v Value, open json.Delim, depth int) (Value, error) {
	if v.Kind = List; open == '{' {
		v.Kind = Map
	}
	var keys seen
	for j.decoder.More() {
		var e Entry
		if v.Kind == Map {
			key, err := j.token()
			if err != nil {
				return v, err
			}
			e.Key, _ = key.(string)
			e.Line = j.line()
		}
		var err error
		if e.Value, err = j.value(depth + 1); err != nil {
			return v, err
		}
		if v.Kind == List {
			v.Items = append(v.Items, e.Value)
			continue
		}
		if keys.twice(e.Key) {
			return v, &Error{e.Line, fmt.Sprintf("%.80q is given twice", e.Key)}
		}
		v.Entries = append(v.Entries, e)
	}
	_, err := j.token()
	return v, err
}
