package input

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ashlar-mem/ashlar/internal/unpack"
)

// maxText is how much text is searched for dumps and messages.
const maxText = 64 << 20

// isText tells text from binary data by its beginning. Logs are not always
// clean: some bytes may be of another encoding, or none at all.
func isText(head []byte) bool {
	if wideOrder(head) != nil {
		return true
	}
	if len(head) > 0 && head[0] == 0x80 { // a pickle
		return false
	}
	odd := 0
	for i := 0; i < len(head); {
		r, size := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && size == 1 && len(head)-i >= utf8.UTFMax || r < ' ' && !strings.ContainsRune("\t\r\n\f\b\x1b", r) {
			odd++
		}
		i += size
	}
	const part = 5 // of a log in an old encoding with a language that has few other letters
	return odd*part <= len(head)
}

// wideOrder returns the byte order of UTF-16, which PowerShell writes; nil for
// any other text.
func wideOrder(head []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return binary.LittleEndian
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return binary.BigEndian
	}
	return nil
}

// plainText decompresses a text and makes it clean UTF-8. Of a long one it is
// the end; cut says that something before it is left out already.
func (r reader) plainText(name string, head []byte, source io.Reader, cut bool) ([]byte, error) {
	text, dropped, err := r.unpackText(source)
	if err != nil {
		return nil, err
	}
	if cut || dropped {
		r.warn("%s: more than %d MiB of text; its last %d MiB are read, and lines are counted from there", name, maxText>>20, maxText>>20)
	}
	if order := wideOrder(head); order != nil {
		text = narrow(text, order)
	}
	text = bytes.ToValidUTF8(text, []byte("?"))
	for i, c := range text {
		if c == 0 {
			text[i] = ' '
		}
	}
	return text[max(0, len(text)-maxText):], nil
}

// narrow turns UTF-16 into UTF-8.
func narrow(text []byte, order binary.ByteOrder) []byte {
	out := make([]byte, 0, len(text)/2)
	for i := 0; i+1 < len(text); i += 2 {
		c := rune(order.Uint16(text[i:]))
		if utf16.IsSurrogate(c) && i+3 < len(text) {
			if both := utf16.DecodeRune(c, rune(order.Uint16(text[i+2:]))); both != utf8.RuneError {
				c = both
				i += 2
			}
		}
		if c != 0xfeff {
			out = utf8.AppendRune(out, c)
		}
	}
	return out
}

// lastPart is the end of a long text file, or all of it if it is compressed.
func lastPart(file *os.File, head []byte, size int64) (io.Reader, error) {
	begin := make([]byte, 4)
	if _, err := file.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	from := max(0, size-maxText)
	if unpack.Compression(begin) != "" {
		from = 0
	}
	if wideOrder(head) != nil {
		from &^= 1
	}
	_, err := file.Seek(from, io.SeekStart)
	return file, err
}

// unpackText decompresses a text, and keeps the end of a long one.
func (r reader) unpackText(source io.Reader) (text []byte, dropped bool, err error) {
	plain, err := unpack.New(source, unpack.Ratio)
	if err != nil {
		return nil, false, err
	}
	defer plain.Close()
	// More than the part that is kept, so that it moves seldom.
	const room = maxText + maxText/4
	all := make([]byte, 0, headBytes)
	for {
		if len(all) == cap(all) && cap(all) == room {
			all = append(all[:0], all[len(all)-maxText:]...) // an even number of bytes: UTF-16 has pairs
			dropped = true
		} else if len(all) == cap(all) {
			all = append(make([]byte, 0, min(2*cap(all), room)), all...)
		}
		n, err := plain.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case errors.Is(err, io.EOF):
			return all[max(0, len(all)-maxText):], dropped || len(all) > maxText, nil
		case err != nil:
			return nil, false, err
		case r.ctx.Err() != nil:
			return nil, false, r.ctx.Err()
		}
	}
}
