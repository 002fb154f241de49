package offline

import (
	"bytes"
	"crypto/sha256"
	"encoding/ascii85"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/gzip"

	"github.com/ashlar-mem/ashlar/internal/view"
)

var engine = fstest.MapFS{"ashlar.wasm.gz": {Data: []byte("\x1f\x8bengine")}, "wasm_exec.js": {Data: []byte("glue();")}}

// between returns what is between two texts.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, from)
	inside, _, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("no %q ... %q", from, to)
	}
	return inside
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := io.ReadAll(ascii85.NewDecoder(strings.NewReader(strings.ReplaceAll(text, "v", "<"))))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The page holds the engine and the file, whatever its name; its policy allows
// the script and the style that it has, and no connection.
func TestPage(t *testing.T) {
	plain := bytes.Repeat([]byte("plain "), 1000)
	var out bytes.Buffer
	if err := write(&out, engine, []view.File{{Name: `"><script>alert(1)</script>`, Data: plain}}); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	if got := decode(t, between(t, page, `id="engine">`, "</script>")); string(got) != "\x1f\x8bengine" {
		t.Errorf("the engine is %q", got)
	}
	z, err := gzip.NewReader(bytes.NewReader(decode(t, between(t, page, `data-name="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;">`, "</script>"))))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("the file is %.40q, %v", got, err)
	}
	if worker := between(t, page, `id="worker">`, "</script>"); !strings.HasPrefix(worker, "glue();") {
		t.Errorf("the worker begins with %.40q", worker)
	}
	policy := strings.ReplaceAll(between(t, page, `Policy" content="`, `"`), "&#39;", "'")
	for _, part := range []string{between(t, page, "<style>", "</style>"), between(t, page, "<script>", "</script>")} {
		sum := sha256.Sum256([]byte(part))
		if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(policy, "'sha256-"+hash+"'") {
			t.Errorf("the policy %s does not allow %.40q", policy, part)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "connect-src") || strings.Contains(policy, "unsafe-inline") {
		t.Errorf("the policy is %s", policy)
	}
}

func TestNoEngine(t *testing.T) {
	if err := write(io.Discard, fstest.MapFS{}, nil); !errors.Is(err, ErrNoEngine) {
		t.Errorf("without an engine: %v", err)
	}
}

// The text of any bytes has no character that could end its element, and becomes
// the same bytes again. What is compressed stays as it is.
func TestEncode(t *testing.T) {
	var all []byte
	for i := range 1 << 16 {
		all = append(all, byte(i>>8), byte(i), byte(i*7))
	}
	for n := range 9 {
		data := append(make([]byte, 8), all[:len(all)-n]...)
		text := encode(data)
		if bytes.ContainsAny(text, "<\n") || !bytes.Equal(decode(t, string(text)), data) {
			t.Errorf("%d bytes do not survive", len(data))
		}
	}
	for _, magic := range []string{"\x1f\x8b", "\x28\xb5\x2f\xfd"} {
		if got, err := packed([]byte(magic + "rest")); err != nil || string(got) != magic+"rest" {
			t.Errorf("%q becomes %q, %v", magic+"rest", got, err)
		}
	}
}
