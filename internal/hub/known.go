package hub

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/ashlar-mem/ashlar/internal/atomicfile"
	"github.com/ashlar-mem/ashlar/internal/guard"
)

// known is what a store should hold. It is in a file of its own: a server that finds
// its files damaged or gone takes the stream for shorter, or for a new one.
type known struct {
	Streams map[string]knownStream `json:"streams"`
}

type knownStream struct {
	Last uint64 `json:"last"` // sequence number
	// Files are those with the messages when the server ended; none if it runs, or
	// was killed.
	Files map[string]knownFile `json:"files,omitempty"`
}

type knownFile struct {
	Bytes  int64 `json:"bytes"`
	TimeNS int64 `json:"time_ns"`
}

func knownPath(dir string) string { return filepath.Join(dir, "streams.json") }

// maxKnown is far above any list of streams.
const maxKnown = 256 // MiB

// readKnown reads what a store should hold; nothing if no server has written it.
func readKnown(dir string) (k known, damaged bool, err error) {
	data, err := guard.ReadRegular(knownPath(dir), maxKnown, "list of streams")
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil
	}
	if err != nil {
		return k, false, err
	}
	if json.Unmarshal(data, &k) != nil || k.Streams == nil {
		return known{}, true, nil
	}
	return k, false, nil
}

func (k *known) write(dir string) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	f, err := atomicfile.Create(knownPath(dir))
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// ask asks a server how far its streams have come; false if it does not know.
func (k *known) ask(s *server.Server) bool {
	all, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil || all.Disabled {
		return false
	}
	k.Streams = map[string]knownStream{}
	for _, account := range all.AccountDetails {
		for _, stream := range account.Streams {
			k.Streams[stream.Name] = knownStream{Last: stream.State.LastSeq}
		}
	}
	return true
}

// list adds the files of streams whose server has ended.
func (k *known) list(dir string) error {
	for name, stream := range k.Streams {
		files, err := listFiles(messagesDir(dir, name))
		if err != nil {
			return err
		}
		stream.Files = files
		k.Streams[name] = stream
	}
	return nil
}

// stateName is a file beside the blocks, in which a server that ends says what they
// hold. It reads the blocks again if that is not there.
const stateName = "index.db"

// listFiles lists the blocks of a folder, and what the server knows of them.
func listFiles(dir string) (map[string]knownFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := map[string]knownFile{}
	for _, e := range entries {
		if e.Name() != stateName && !strings.HasSuffix(e.Name(), ".blk") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		files[e.Name()] = knownFile{info.Size(), info.ModTime().UnixNano()}
	}
	return files, nil
}

// knownInterval is how often the file is written while a server runs.
const knownInterval = time.Second

// remember keeps the file up to date until the server is closed. What fails is tried
// again.
func (o *owned) remember() {
	tick := time.NewTicker(knownInterval)
	defer tick.Stop()
	for {
		var now known
		if now.ask(o.server) && !reflect.DeepEqual(now, o.known) && now.write(o.dir) == nil {
			o.known = now
		}
		select {
		case <-o.closing:
			return
		case <-tick.C:
		}
	}
}

// seal writes down what the server has left, which has ended.
func (o *owned) seal() {
	if o.known.list(o.dir) == nil {
		o.known.write(o.dir) // else the next server reads the blocks again
	}
}
