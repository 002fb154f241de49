package unpack

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// pack compresses n times the same text.
func pack(t *testing.T, compression, text string, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := io.WriteCloser(nopCloser{&out})
	switch compression {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	for range n {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

var compressions = []string{"", "gzip", "zstd"}

func TestNew(t *testing.T) {
	for _, c := range compressions {
		packed := pack(t, c, "some text\n", 10_000)
		if got := Compression(packed); got != c {
			t.Errorf("%q is taken for %q", c, got)
		}
		r, err := New(bytes.NewReader(packed), 0)
		if err != nil {
			t.Fatal(c, err)
		}
		text, err := io.ReadAll(r)
		r.Close()
		if err != nil || r.Compression != c || string(text) != strings.Repeat("some text\n", 10_000) {
			t.Errorf("%q: %d bytes of %q, %v", c, len(text), r.Compression, err)
		}
	}
}

func TestShortFiles(t *testing.T) {
	for _, text := range []string{"", "a", "abc"} {
		r, err := New(strings.NewReader(text), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// What becomes much larger than it was is refused soon, and only that.
func TestBombs(t *testing.T) {
	const mib = 1 << 20
	text := strings.Repeat("a", mib)
	for _, c := range compressions[1:] {
		for size, refused := range map[int]bool{minBomb / mib: false, minBomb/mib + 1: true} {
			r, err := New(bytes.NewReader(pack(t, c, text, size)), 0)
			if err != nil {
				t.Fatal(c, err)
			}
			n, err := io.Copy(io.Discard, r)
			r.Close()
			var bomb *BombError
			if errors.As(err, &bomb) != refused || !refused && err != nil {
				t.Errorf("%s, %d MiB: %v", c, size, err)
			}
			if refused && (n > minBomb || bomb.Out < bomb.In*bomb.Ratio || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s: %d bytes were read before %v", c, n, err)
			}
		}
	}
	r, err := New(strings.NewReader(strings.Repeat(text, minBomb/mib+1)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("not compressed: %v", err)
	}
}

func TestDamage(t *testing.T) {
	for _, c := range compressions[1:] {
		packed := pack(t, c, "some text\n", 1000)
		for i := range packed {
			spoilt := bytes.Clone(packed)
			spoilt[i] ^= 0x41
			for _, data := range [][]byte{packed[:i], spoilt} {
				r, err := New(bytes.NewReader(data), 0)
				if err == nil {
					_, err = io.Copy(io.Discard, r)
					r.Close()
				}
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Errorf("%s, byte %d: %v", c, i, err)
				}
			}
		}
	}
}
