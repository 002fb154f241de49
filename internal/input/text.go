package input

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
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
	if packed(begin) {
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
	begin := make([]byte, 4)
	n, err := io.ReadFull(source, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, err
	}
	plain, stop, err := unpack(io.MultiReader(bytes.NewReader(begin[:n]), source), begin[:n])
	if err != nil {
		return nil, false, err
	}
	defer stop()
	var all bytes.Buffer
	for {
		_, err := io.CopyN(&all, plain, maxText)
		if extra := all.Len() - maxText; extra > 0 {
			all.Next(extra &^ 1) // UTF-16 has pairs
			dropped = true
		}
		switch {
		case errors.Is(err, io.EOF):
			return all.Bytes()[max(0, all.Len()-maxText):], dropped, nil
		case err != nil:
			return nil, false, fmt.Errorf("the compressed data is damaged: %w", err)
		case r.ctx.Err() != nil:
			return nil, false, r.ctx.Err()
		}
	}
}

// The beginnings of compressed files.
var gzipMagic, zstdMagic = []byte("\x1f\x8b"), []byte("\x28\xb5\x2f\xfd")

func packed(begin []byte) bool {
	return bytes.HasPrefix(begin, gzipMagic) || bytes.HasPrefix(begin, zstdMagic)
}

// unpack decompresses a file that begins so.
func unpack(r io.Reader, begin []byte) (io.Reader, func(), error) {
	switch {
	case bytes.HasPrefix(begin, gzipMagic):
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	case bytes.HasPrefix(begin, zstdMagic):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxText*2))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}
