package attack

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/unpack"
)

// Case is one input, with the command lines that it is given to. In these FILE stands
// for the input, GOOD for a snapshot that is right, and OUT for a file that does not
// exist.
type Case struct {
	What     string // in words
	Name     string // of the file, with its ending
	Data     []byte
	Unpacked int64 // bytes, at least
	Commands []string
	Sums     Sums // what a snapshot has to be answered with; nil if that is not known
	Page     bool // the file is for the page's server, too
	Answered bool // no command may refuse it
}

// Generator makes cases. The same seed gives the same ones.
type Generator struct {
	Good    string // a snapshot
	Small   bool   // no inputs that take long to make and to read
	rand    *rand.Rand
	trees   []*Dict
	ledgers [][]byte
	corpus  []string
}

// maxEvents is how many events of one are kept.
const maxEvents = 2000

// maxSeed is the largest file that others are made from.
const maxSeed = 1 << 20

// New makes a generator from the files of the repository at root. Those of the corpus
// are given as they are, and changed.
func New(seed uint64, root string, corpus []string) (*Generator, error) {
	g := &Generator{rand: rand.New(rand.NewPCG(seed, 22)), corpus: corpus, Good: filepath.Join(root, "testdata/fresh/unet_multires-tight-default.pickle.gz")}
	var files []string
	for _, pattern := range []string{"testdata/variety/*", "testdata/fresh/*"} {
		some, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	for _, file := range append(files, g.Good) {
		data, err := content(file)
		if err != nil || len(data) > maxSeed {
			continue
		}
		if t, err := tree(data); err == nil {
			g.trees = append(g.trees, clone(shortened(t, maxEvents)).(*Dict))
		}
	}
	ledgers, _ := filepath.Glob(filepath.Join(root, "testdata/dry/*.dry"))
	for _, file := range ledgers {
		data, err := content(file)
		if err != nil {
			return nil, err
		}
		g.ledgers = append(g.ledgers, data)
	}
	if len(g.trees) == 0 || len(g.ledgers) == 0 {
		return nil, fmt.Errorf("%s: no snapshots and ledgers to make others from", root)
	}
	return g, nil
}

// content returns a file, decompressed; of a large one the beginning.
func content(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := unpack.New(f, unpack.Ratio)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxSeed+1))
}

// The command lines for each kind of file.
var (
	snapshotCommands = []string{
		"stats FILE", "stats FILE --json", "stats FILE --json", "events FILE --json", "explain FILE", "explain FILE --json", "explain FILE --limit 1GiB",
		"verify FILE", "verify FILE --json", "report FILE -o OUT.html", "report FILE -o OUT.html", "whatif FILE --json --set CONF", "whatif FILE --set CONF --limit 2GiB", "whatif FILE --set CONF --limit none --device-memory none",
		"tune FILE --json --limit 8GiB", "check FILE --max-reserved 1GiB --json", "check FILE --survives 1GiB", "diff FILE GOOD", "diff GOOD FILE --json",
		"convert FILE OUT.json", "convert FILE OUT.pickle", "convert FILE OUT.perfetto", "convert FILE OUT.parquet", "gen FILE OUT.pickle --events 2000",
		"policies FILE --budget 1s", "policies FILE --json --budget 1s --limit 1GiB", "tenants --limit 8GiB --tenant a=FILE --tenant b=GOOD --json",
		"whatif FILE --overflow 1GiB --json", "report FILE --interactive -o OUT.html",
	}
	textCommands   = []string{"stats FILE", "stats FILE --json", "explain FILE", "explain FILE --json", "report FILE -o OUT.html", "check FILE --no-oom", "verify FILE"}
	settingCommand = []string{"whatif GOOD --json --set CONF", "whatif GOOD --set CONF --limit 7609MiB", "whatif GOOD --set CONF --limit none --device-memory none", "plan FILE --batch 1 --seq 64 --settings CONF --json"}
	planCommands   = []string{"plan FILE --batch 1 --seq 64 --json", "plan FILE --batch 2 --seq 128 --gpu H100", "plan FILE --batch 1 --seq 64 --optimizer sgd --lora 8"}
	dryCommands    = []string{"dry FILE --json", "dry FILE --limit 1GiB", "dry FILE --trace OUT.pickle"}
)

// some returns n of the commands.
func (g *Generator) some(all []string, n int) []string {
	var out []string
	for _, i := range g.rand.Perm(len(all))[:min(n, len(all))] {
		out = append(out, strings.ReplaceAll(all[i], "CONF", strings.ReplaceAll(conf(g.rand), " ", "_")))
	}
	return out
}

// Next returns the next case.
func (g *Generator) Next() *Case {
	r := g.rand
	switch n := r.IntN(100); {
	case n < 52, n < 60 && g.Small:
		return g.snapshot()
	case n < 55:
		v, what := manyRows(r)
		return g.encoded(v, what)
	case n < 57:
		data, what := longText(r)
		return &Case{What: what, Name: "a.json", Data: data, Unpacked: int64(len(data)), Commands: g.some(snapshotCommands, 3), Page: true}
	case n < 59:
		data, what := nested(r)
		return &Case{What: what, Name: "a.json", Data: data, Unpacked: int64(len(data)), Commands: g.some(snapshotCommands, 3), Page: true}
	case n < 60:
		data, ext, what := bomb(r)
		return &Case{What: what, Name: "a" + ext, Data: data, Unpacked: int64(len(data)), Commands: append(g.some(textCommands, 2), g.some(dryCommands, 1)...), Page: true}
	case n < 75:
		data := log(r)
		return &Case{What: "text", Name: "a.log", Data: data, Unpacked: int64(len(data)), Commands: g.some(textCommands, 4), Page: true}
	case n < 81:
		return &Case{What: "settings", Name: "config.json", Data: config(r), Commands: g.some(settingCommand, 2)}
	case n < 86:
		data := config(r)
		return &Case{What: "config", Name: "config.json", Data: data, Unpacked: int64(len(data)), Commands: g.some(planCommands, 2)}
	case n < 89:
		data := weights(r)
		return &Case{What: "safetensors", Name: "model.safetensors", Data: data, Unpacked: int64(len(data)), Commands: g.some(planCommands, 1)}
	case n < 94 || len(g.corpus) == 0:
		data := ledger(r, g.ledgers[r.IntN(len(g.ledgers))])
		return &Case{What: "ledger", Name: "a.dry", Data: data, Unpacked: int64(len(data)), Commands: g.some(dryCommands, 2)}
	}
	return g.Variation(g.corpus[r.IntN(len(g.corpus))])
}

// snapshot is a real snapshot with changes.
func (g *Generator) snapshot() *Case {
	r := g.rand
	v := clone(shortened(g.trees[r.IntN(len(g.trees))], []int{0, 20, 200, 2000}[r.IntN(4)])).(*Dict)
	what := ""
	if r.IntN(3) == 0 {
		what = g.configure(v)
	}
	switch n := r.IntN(10); {
	case n == 1:
		what += wrap(r, v)
	case n > 1:
		what += mutate(r, v)
	}
	return g.encoded(v, what)
}

// shortened is a snapshot with the ends of its traces, as a full history leaves them.
func shortened(v *Dict, keep int) *Dict {
	out := &Dict{Keys: v.Keys, Values: append([]any{}, v.Values...)}
	var traces []any
	for _, t := range list(v.Get("device_traces")) {
		events := list(t)
		traces = append(traces, &List{Items: events[max(0, len(events)-keep):]})
	}
	out.Set("device_traces", &List{Items: traces})
	return out
}

// configure puts settings into a snapshot, in a text and as a field.
func (g *Generator) configure(v *Dict) string {
	text := conf(g.rand)
	s, ok := v.Get("allocator_settings").(*Dict)
	if !ok {
		s = &Dict{}
		v.Set("allocator_settings", s)
	}
	s.Set("PYTORCH_CUDA_ALLOC_CONF", text)
	for _, key := range []string{"release_lock_on_cudamalloc", "expandable_segments", "graph_capture_record_stream_reuse"} {
		if strings.Contains(text, key+":True") {
			s.Set(key, true)
		}
	}
	return "settings " + text + ", "
}

// encoded is a case with a value in one of the formats, perhaps compressed or spoilt.
func (g *Generator) encoded(v *Dict, what string) *Case {
	r := g.rand
	c := &Case{What: what, Name: "a.pickle", Commands: g.some(snapshotCommands, 4), Page: true}
	if n := r.IntN(8); n < 6 {
		c.Data = Pickle(v, n, r.IntN(2) == 0)
		c.What = fmt.Sprintf("protocol %d, %s", n, what)
	} else {
		c.Name, c.Data = "a.json", JSON(v)
	}
	c.Unpacked = int64(len(c.Data))
	if r.IntN(12) == 0 {
		c.Data = scramble(r, c.Data)
	} else {
		c.Sums = sums(v)
	}
	if ext := []string{"", "", "", ".gz", ".zst"}[r.IntN(5)]; ext != "" {
		c.Name, c.Data = c.Name+ext, pack(c.Data, ext)
		if r.IntN(12) == 0 {
			c.Data, c.Sums = scramble(r, c.Data), nil
		}
	}
	return c
}

// unpackedSize is the size of a file's content; of a bomb, what was read of it.
func unpackedSize(file string) int64 {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	r, err := unpack.New(f, unpack.Ratio)
	if err != nil {
		return 0
	}
	defer r.Close()
	n, _ := io.Copy(io.Discard, r)
	return n
}

// Given is a file of the corpus as it is, with every command.
func (g *Generator) Given(file string) *Case {
	c := g.Variation(file)
	data, err := os.ReadFile(file)
	if err != nil {
		data = []byte(err.Error())
	}
	c.What, c.Name, c.Sums = filepath.Base(file)+" as it is", filepath.Base(file), nil
	c.Data, c.Unpacked, c.Commands = data, unpackedSize(file), g.some(snapshotCommands, len(snapshotCommands))
	return c
}

// Variation is a file of the corpus with changes: in its structure if it can be
// read, else in its bytes.
func (g *Generator) Variation(file string) *Case {
	r := g.rand
	data, err := content(file)
	if err != nil {
		data = []byte(err.Error())
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".gz"), ".zst")
	if t, err := tree(data); err == nil && len(data) < maxSeed && r.IntN(3) > 0 {
		c := g.encoded(t, "")
		if r.IntN(4) > 0 {
			c = g.encoded(t, mutate(r, t))
		}
		c.What = name + ": " + c.What
		return c
	}
	if r.IntN(2) == 0 && !bytes.HasPrefix(data, []byte("\x80")) {
		data = []byte(oddNumbers(r, string(data[:min(len(data), 1<<16)])))
	} else {
		data = scramble(r, data)
	}
	return &Case{What: name + ", scrambled", Name: name, Data: data, Unpacked: int64(len(data)), Commands: append(g.some(snapshotCommands, 2), g.some(textCommands, 2)...), Page: true}
}
