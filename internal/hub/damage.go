package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ashlar-mem/ashlar/internal/guard"
)

func streamsDir(dir string) string        { return filepath.Join(dir, "jetstream", "$G", "streams") }
func messagesDir(dir, name string) string { return filepath.Join(streamsDir(dir), name, "msgs") }

// mender looks for damage before a server does: that one cuts a block off at the first
// damaged record, removes a block without records, and leaves out a stream whose
// description it cannot read, all without a word. What is damaged is put aside, and the
// server gets what is intact.
type mender struct {
	dir   string
	aside string   // where damaged files go; it is made when there is one
	found []string // what is damaged
	moved bool     // there is something in aside
}

func newMender(dir string, now time.Time) *mender {
	return &mender{dir: dir, aside: filepath.Join(dir, "damaged", now.UTC().Format("20060102-150405.000000"))}
}

// mend makes the files of a folder whole as far as that goes, and tells log what was
// damaged.
func mend(dir string, now time.Time, log func(string)) error {
	m := newMender(dir, now)
	k, damaged, err := readKnown(dir)
	if err != nil {
		return m.unreadable(err)
	}
	if damaged {
		m.note("", filepath.Base(knownPath(dir))+" is damaged, so what else should be there is not known")
		if err := m.put("", knownPath(dir)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(streamsDir(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m.unreadable(err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		if there[name] = true; strings.HasPrefix(name, ".") { // a server is removing it
			continue
		}
		if err := m.stream(name, k.Streams[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Streams)) {
		if !there[name] && k.Streams[name].Last > 0 {
			m.note(name, "all of it is missing")
		}
	}
	m.tell(log)
	return nil
}

// mostTold is how much of the damage is listed.
const mostTold = 4

func (m *mender) tell(log func(string)) {
	if len(m.found) == 0 || log == nil {
		return
	}
	list := m.found
	if more := len(list) - mostTold; more > 0 {
		list = append(slices.Clone(list[:mostTold]), fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("the store in %s is damaged (%s): what is intact is served", m.dir, strings.Join(list, "; "))
	if m.moved {
		text += ", the damaged files are kept in " + m.aside
	}
	log(text + "; if you have a backup of that folder, end what uses it and put the backup in its place")
}

func (m *mender) note(stream, what string) {
	if stream != "" {
		what = stream + ": " + what
	}
	m.found = append(m.found, what)
}

// unreadable says that nothing is opened: what cannot be read cannot be told from
// what is gone.
func (m *mender) unreadable(err error) error {
	return fmt.Errorf("the store in %s is left as it is, because a part cannot be read (%w): check that the files are yours and the disk is well, or move that part elsewhere", m.dir, err)
}

// put moves a file, if it is there, out of the server's way.
func (m *mender) put(stream, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	to := filepath.Join(m.aside, stream)
	err := os.MkdirAll(to, 0o700)
	if err == nil {
		err = os.Rename(path, filepath.Join(to, filepath.Base(path)))
	}
	if err != nil {
		return fmt.Errorf("the store in %s is damaged (%s), and the damaged file cannot be put aside (%w): check that the disk has room and the files are yours", m.dir, strings.Join(m.found, "; "), err)
	}
	m.moved = true
	return nil
}

func (m *mender) stream(name string, k knownStream) error {
	files, err := listFiles(messagesDir(m.dir, name))
	if err != nil {
		return m.unreadable(err)
	}
	if err := m.description(name, len(files) > 0); err != nil {
		return err
	}
	if k.Files != nil && maps.Equal(files, k.Files) {
		return nil
	}
	return m.messages(name, k, files)
}

// description checks what a server keeps of a stream beside its messages. Whoever opens
// the stream describes it again.
func (m *mender) description(name string, used bool) error {
	paths := []string{filepath.Join(streamsDir(m.dir), name, "meta.inf"), filepath.Join(streamsDir(m.dir), name, "meta.sum")}
	var contents [2][]byte
	for i, path := range paths {
		data, err := guard.ReadRegular(path, maxKnown, "description of a stream")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return m.unreadable(err)
		}
		contents[i] = data
	}
	h, err := keyedHash(name)
	if err != nil {
		return err
	}
	h.Write(contents[0])
	if fmt.Sprintf("%x", h.Sum(nil)) == string(contents[1]) || !used {
		return nil
	}
	m.note(name, "its description is damaged")
	for _, path := range paths {
		if err := m.put(name, path); err != nil {
			return err
		}
	}
	return nil
}

// maxBlock is far above any block that a server writes.
const maxBlock = 256 // MiB

// messages checks the blocks of a stream.
func (m *mender) messages(name string, k knownStream, files map[string]knownFile) error {
	var indices []int
	for file := range files {
		var index int
		if _, err := fmt.Sscanf(file, "%d.blk", &index); err == nil {
			indices = append(indices, index)
		}
	}
	slices.Sort(indices)
	before, served, broken := len(m.found), k.sameSizes(files), map[int]blockState{}
	var top, most uint64 // the last sequence number, and how many may have come behind it
	for _, index := range indices {
		data, err := guard.ReadRegular(filepath.Join(messagesDir(m.dir, name), blockName(index)), maxBlock, "block of messages")
		if err != nil {
			return m.unreadable(err)
		}
		st, err := readBlock(name, index, data)
		if err != nil {
			return err
		}
		top, most = max(top, st.top), uint64(st.tail)/(recordHead+recordHash)
		if st.damaged > 0 {
			served = served && st.served
			broken[index] = st
			m.note(name, fmt.Sprintf("%d bytes of block %d are damaged", st.damaged, index))
		}
	}
	m.shorter(name, k, files)
	if top < k.Last && len(m.found) == before {
		m.note(name, fmt.Sprintf("what came behind message %d of %d is missing", top, k.Last))
	}
	if len(m.found) == before || served {
		return nil
	}
	return m.replace(name, broken, indices, top, max(k.Last, top+most))
}

// sameSizes reports whether the server that ended has left the same files, so that the
// next one reads no block before it must.
func (k *knownStream) sameSizes(files map[string]knownFile) bool {
	return k.Files != nil && files[stateName] == k.Files[stateName] && maps.EqualFunc(files, k.Files, func(a, b knownFile) bool { return a.Bytes == b.Bytes })
}

// shorter notes blocks of which something is gone since the server ended.
func (m *mender) shorter(name string, k knownStream, files map[string]knownFile) {
	for _, file := range slices.Sorted(maps.Keys(k.Files)) {
		is, ok := files[file]
		switch was := k.Files[file]; {
		case file == stateName: // the server can do without
		case !ok:
			m.note(name, fmt.Sprintf("%s is missing", file))
		case is.Bytes < was.Bytes:
			m.note(name, fmt.Sprintf("%s has lost %d bytes", file, was.Bytes-is.Bytes))
		}
	}
}

// replace puts damaged blocks aside, and what is intact of them in their place. The
// server is to count again, and must not give a sequence number twice: who has noted
// one would take the new message for the old.
func (m *mender) replace(name string, broken map[int]blockState, indices []int, have, want uint64) error {
	dir, last := messagesDir(m.dir, name), 1
	for _, index := range indices {
		path, st := filepath.Join(dir, blockName(index)), broken[index]
		last = index
		if st.damaged == 0 {
			continue
		}
		part := path + ".part"
		if err := os.WriteFile(part, st.intact, 0o600); err != nil {
			return m.unwritable(err)
		}
		if err := m.put(name, path); err != nil {
			return err
		}
		if err := os.Rename(part, path); err != nil {
			return m.unwritable(err)
		}
	}
	if err := m.put(name, filepath.Join(dir, stateName)); err != nil || want <= have {
		return err
	}
	h, err := blockHash(name, last)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return m.unwritable(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, blockName(last)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return m.unwritable(err)
	}
	_, err = f.Write(erasedRecord(h, want, time.Now().UnixNano()))
	if err = errors.Join(err, f.Close()); err != nil {
		return m.unwritable(err)
	}
	return nil
}

func (m *mender) unwritable(err error) error {
	return fmt.Errorf("the store in %s is damaged, and what is intact cannot be written (%w): check that the disk has room and the files are yours", m.dir, err)
}

// mendConsumer puts aside what a server keeps of the workers of a queue, if that is what
// keeps the queue from being opened. Only the server can tell. What waits, and what was
// being done, is handed out again.
func (h *Hub) mendConsumer(stream string, err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != jetstream.ErrorCode(server.JSConsumerCreateErrF) || !h.Local() {
		return false
	}
	m := newMender(h.options.Dir, time.Now())
	m.note(stream, "what its workers had taken is damaged")
	if m.put(stream, filepath.Join(streamsDir(m.dir), stream, "obs", consumerName)) != nil || !m.moved {
		return false
	}
	m.tell(h.options.Log)
	return true
}
