package attack

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// manyRows is a snapshot with very many rows of one kind.
func manyRows(r *rand.Rand) (*Dict, string) {
	count := []int{1000, 65_537, 230_000}[r.IntN(3)]
	block := func(at, size int64, state string) *Dict {
		return dict("address", at, "size", size, "requested_size", size, "state", state)
	}
	segment := func(at, size int64, blocks ...any) *Dict {
		return dict("device", int64(0), "address", at, "total_size", size, "allocated_size", size, "active_size", size, "requested_size", size,
			"stream", int64(0), "segment_type", "large", "blocks", &List{Items: blocks})
	}
	const base, step = int64(0x7f0000000000), int64(512)
	segments, events, notes, traces := &List{}, &List{}, &List{}, &List{}
	kind := []string{"blocks", "segments", "annotations", "events", "devices", "frames", "streams", "pools", "passing blocks", "passing segments", "passing pieces"}[r.IntN(11)]
	one := segment(base, step, block(base, step, "active_allocated"))
	switch kind {
	case "blocks":
		var blocks []any
		for i := range int64(count) {
			blocks = append(blocks, block(base+i*step, step, "active_allocated"))
		}
		one = segment(base, int64(count)*step, blocks...)
	case "segments":
		for i := range int64(count) {
			segments.Items = append(segments.Items, segment(base+(i+1)<<21, step, block(base+(i+1)<<21, step, "active_allocated")))
		}
	case "annotations":
		for i := range int64(count) {
			notes.Items = append(notes.Items, dict("stage", []string{"START", "END"}[i%2], "name", fmt.Sprintf("step#%d", i/2), "device", int64(0), "time_us", i))
		}
	case "events", "frames":
		for i := range int64(min(count, 65_537)) {
			e := dict("action", []string{"alloc", "free_requested", "free_completed"}[i%3], "addr", base, "size", step, "stream", int64(0), "time_us", i)
			if kind == "frames" {
				e.Set("frames", &List{Items: []any{dict("name", fmt.Sprintf("f%d", i), "filename", fmt.Sprintf("%d.py", i), "line", i)}})
			}
			events.Items = append(events.Items, e)
		}
	case "streams", "pools":
		// Those of the events alone, as many as are allowed or a few more.
		of := min(count, []int{200, 4096, 5000}[r.IntN(3)])
		for i := range int64(count) {
			e := dict("action", []string{"alloc", "free_requested", "free_completed"}[i%3], "addr", base, "size", step, "stream", int64(0), "time_us", i)
			if n := i / 3 % int64(of); kind == "streams" {
				e.Set("stream", n)
			} else {
				e.Set("pool_id", &List{Items: []any{int64(0), n}})
			}
			events.Items = append(events.Items, e)
		}
	case "passing blocks", "passing segments", "passing pieces":
		count = min(count, 100_000)
		events.Items = passing(r, kind, base, count)
	case "devices":
		for range count {
			traces.Items = append(traces.Items, &List{})
		}
	}
	segments.Items = append(segments.Items, one)
	traces.Items = append([]any{events}, traces.Items...)
	return dict("segments", segments, "device_traces", traces, "external_annotations", notes), fmt.Sprintf("%d %s", count, kind)
}

// passing are events in which very many blocks, segments or pieces of an expandable segment come and go, all or a part of them,
// in no order.
func passing(r *rand.Rand, kind string, end int64, count int) (all []any) {
	size, comes, goes := []int64{2 << 20, 20 << 20}[r.IntN(2)], "segment_alloc", "segment_free"
	switch kind {
	case "passing blocks":
		size, comes, goes = 512, "", ""
	case "passing pieces":
		comes, goes = "segment_map", "segment_unmap"
	}
	add := func(share int, actions ...string) {
		for _, i := range r.Perm(count)[:count/share] {
			for _, action := range actions {
				if action != "" {
					all = append(all, dict("action", action, "addr", end-int64(i+1)*size, "size", size, "stream", int64(0), "time_us", int64(len(all))))
				}
			}
		}
	}
	if r.IntN(4) > 0 { // else they are older
		add(1, comes, "alloc")
	}
	left := 1 + r.IntN(2)
	if r.IntN(2) == 0 {
		add(left, "free_requested", "free_completed", goes)
	} else {
		add(left, "free_requested", "free_completed")
		add(left, goes)
	}
	return all
}

// dict makes a dictionary of keys and values in turns.
func dict(pairs ...any) *Dict {
	d := &Dict{}
	for i := 0; i < len(pairs); i += 2 {
		d.Keys, d.Values = append(d.Keys, pairs[i]), append(d.Values, pairs[i+1])
	}
	return d
}

// longText is a snapshot in JSON with one text that is hard to read.
func longText(r *rand.Rand) ([]byte, string) {
	piece := []string{`\n`, `\u0041`, `\\`, `a\"`, `\ud83d\ude00`, `\ud83d`, "ä"}[r.IntN(7)]
	n := []int{1000, 300_000, 4_000_000}[r.IntN(3)]
	where := []string{"user_metadata", "odd", "action", "filename"}[r.IntN(4)]
	field := fmt.Sprintf(`%q: "%s"`, where, strings.Repeat(piece, n))
	if where == "filename" {
		field = `"frames": [{"name": "f", "line": 1, ` + field + `}]`
	}
	text := `{"device_traces": [[{"action": "alloc", "addr": 1, "size": 512, "stream": 0, ` + field + `}]], "segments": []}`
	return []byte(text), fmt.Sprintf("%d times %s in %s", n, piece, where)
}

// nested is a value with very many others around it.
func nested(r *rand.Rand) ([]byte, string) {
	n := []int{150, 250, 100_000}[r.IntN(3)]
	kind := r.IntN(4)
	open, end := "[", "]"
	switch kind {
	case 0:
		open, end = `{"a": `, "}"
	case 1:
		return []byte("\x80\x04" + strings.Repeat("]", n) + strings.Repeat("a", n-1) + "."), fmt.Sprintf("%d lists in a pickle", n)
	case 3:
		return repeated(r, n)
	}
	return []byte(`{"segments": [], "odd": ` + strings.Repeat(open, n) + "1" + strings.Repeat(end, n) + "}"), fmt.Sprintf("%d times %s", n, open)
}

// repeated is a pickle with a list that is written once and named very often.
func repeated(r *rand.Rand, n int) ([]byte, string) {
	key := []string{"device_traces", "segments", "external_annotations", "odd"}[r.IntN(4)]
	item := []*Dict{
		dict("action", "alloc", "addr", int64(0), "size", int64(1), "stream", int64(0)),
		dict("address", int64(0), "total_size", int64(512), "blocks", &List{}),
		dict("address", int64(0), "size", int64(512), "state", "inactive"),
		dict("name", "f", "filename", "f.py", "line", int64(1)),
		dict("stage", "START", "name", "a", "device", int64(0), "time_us", int64(0)),
	}[r.IntN(5)]
	p := &pickler{protocol: 2, texts: map[string]int{}}
	p.op("\x80\x02}(")
	p.text(key)
	p.op("](")
	for range 1000 {
		p.value(item)
		p.put()
		p.op("0")
	}
	p.op("](")
	for i := range p.next {
		p.get(p.next - 1 - i) // in reverse, so that they are no run
	}
	p.op("e")
	p.put()
	for range n {
		p.get(p.next - 1)
	}
	if r.IntN(3) > 0 {
		p.op("eu.")
	}
	return p.out, fmt.Sprintf("%d times a list of 1000 in %s", n, key)
}

// bombs are the beginnings of what becomes large.
var bombs = []string{"", "{", "[", "{'", "(", "\x80\x04", "CUDA out of memory. ", `{"segments": [`, `{"ashlar_dry": 1}` + "\n", `{"torch": "2.11", "ops": [`}

// bomb is a small file that becomes large.
func bomb(r *rand.Rand) (data []byte, ext, what string) {
	head := bombs[r.IntN(len(bombs))]
	piece := []string{" ", "a", "\n", "0", "N0", "memory ", "[", "out of memory\n"}[r.IntN(8)]
	size := []int{80 << 20, 300 << 20, 1 << 30}[r.IntN(3)]
	ext = []string{".gz", ".zst"}[r.IntN(2)]
	var out bytes.Buffer
	w := packer(&out, ext)
	chunk := strings.Repeat(piece, (1<<20)/len(piece))
	_, _ = io.WriteString(w, head) // into memory
	for range size >> 20 {
		_, _ = io.WriteString(w, chunk)
	}
	w.Close()
	return out.Bytes(), ext, fmt.Sprintf("bomb, %d MiB of %q behind %q", size>>20, piece, head)
}

func packer(out io.Writer, ext string) io.WriteCloser {
	if ext == ".gz" {
		return gzip.NewWriter(out)
	}
	w, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are right
	}
	return w
}

// pack compresses a file.
func pack(data []byte, ext string) []byte {
	var out bytes.Buffer
	w := packer(&out, ext)
	_, _ = w.Write(data)
	w.Close()
	return out.Bytes()
}
