package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// An object is stored in parts, one after the other: NATS keeps thousands of
// chunks of a single large one in flight. A part is held in memory until it is
// acknowledged, so that it can be sent again.
const (
	partBytes  = 4 << 20
	chunkBytes = 512 << 10 // of a part; a server takes messages of up to 1 MiB
	partTime   = 10 * time.Second
	listTime   = time.Minute
)

// Objects are named byte strings of any length. A name has no slash.
type Objects struct {
	hub    *Hub
	name   string
	store  jetstream.ObjectStore
	stream jetstream.Stream // of the store
}

// Object describes one of them.
type Object struct {
	Name  string
	Bytes uint64
	Parts int
	Time  time.Time
}

// The keys under which the head of an object says how long it is.
const (
	metaBytes = "bytes"
	metaParts = "parts"
)

// Objects opens a store of objects, and makes it if it is not there.
func (h *Hub) Objects(ctx context.Context, name string, maxAge time.Duration) (*Objects, error) {
	o := &Objects{hub: h, name: name}
	err := h.try(ctx, func(ctx context.Context) (err error) {
		if o.store, err = h.js.ObjectStore(ctx, name); errors.Is(err, jetstream.ErrBucketNotFound) {
			o.store, err = h.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name, TTL: maxAge, Replicas: h.replicas()})
		}
		if err == nil {
			o.stream, err = h.js.Stream(ctx, o.streamName())
		}
		return err
	})
	if err != nil {
		return nil, h.cannotOpen("store of "+name, err)
	}
	return o, nil
}

func (o *Objects) streamName() string { return "OBJ_" + o.name }

func partName(name string, i int) string { return name + "/" + strconv.Itoa(i) }

// Put stores an object. It is there when all of it is: the head is stored last.
// What was stored of one that fails is removed if that is still possible;
// [Objects.Sweep] finds the rest.
func (o *Objects) Put(ctx context.Context, name string, r io.Reader) error {
	parts, total := 0, uint64(0)
	err := func() error {
		part := make([]byte, partBytes)
		for {
			n, err := io.ReadFull(r, part)
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return err
			}
			if n > 0 {
				if err := o.putPart(ctx, jetstream.ObjectMeta{Name: partName(name, parts)}, part[:n]); err != nil {
					return err
				}
				parts++
				total += uint64(n)
			}
			if err != nil {
				return o.putPart(ctx, jetstream.ObjectMeta{Name: name, Metadata: map[string]string{
					metaBytes: strconv.FormatUint(total, 10), metaParts: strconv.Itoa(parts),
				}}, nil)
			}
		}
	}()
	if err != nil {
		o.deleteParts(context.WithoutCancel(ctx), name, parts)
	}
	return err
}

func (o *Objects) putPart(ctx context.Context, meta jetstream.ObjectMeta, data []byte) error {
	if err := o.hub.room(); err != nil {
		return err
	}
	meta.Opts = &jetstream.ObjectMetaOptions{ChunkSize: chunkBytes}
	return o.hub.tryFor(ctx, partTime, func(ctx context.Context) error {
		_, err := o.store.Put(ctx, meta, bytes.NewReader(data))
		return err
	})
}

// info describes an object or a part, or returns [ErrNone]. It asks the server that decides; the client library asks any, and
// one that follows may not have heard yet of what has come or gone.
func (o *Objects) info(ctx context.Context, name string) (*jetstream.ObjectInfo, error) {
	question, err := json.Marshal(map[string]string{"last_by_subj": o.infoSubject(name)})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error   *jetstream.APIError
		Message struct {
			Data []byte
			Time time.Time
		}
	}
	err = o.hub.try(ctx, func(ctx context.Context) error {
		m, err := o.hub.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+o.streamName(), question)
		if err == nil {
			answer.Error = nil
			err = json.Unmarshal(m.Data, &answer)
		}
		if err == nil && answer.Error != nil {
			err = answer.Error
		}
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	info := new(jetstream.ObjectInfo)
	if err := json.Unmarshal(answer.Message.Data, info); err != nil {
		return nil, fmt.Errorf("what the store says of %s cannot be read: %w", name, err)
	}
	if info.Deleted {
		return nil, ErrNone
	}
	info.ModTime = answer.Message.Time
	return info, nil
}

// Stat describes an object, or returns [ErrNone].
func (o *Objects) Stat(ctx context.Context, name string) (Object, error) {
	info, err := o.info(ctx, name)
	if err != nil {
		return Object{}, err
	}
	return describe(info)
}

func describe(info *jetstream.ObjectInfo) (Object, error) {
	size, err := strconv.ParseUint(info.Metadata[metaBytes], 10, 64)
	parts, err2 := strconv.Atoi(info.Metadata[metaParts])
	if err := errors.Join(err, err2); err != nil {
		return Object{}, fmt.Errorf("the object %s does not say how long it is", info.Name)
	}
	return Object{info.Name, size, parts, info.ModTime}, nil
}

// Get opens an object, or returns [ErrNone]. Reading it checks the hash of each
// part.
func (o *Objects) Get(ctx context.Context, name string) (io.Reader, error) {
	info, err := o.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	return &objectReader{ctx: ctx, objects: o, info: info}, nil
}

// objectReader reads the parts of an object.
type objectReader struct {
	ctx     context.Context
	objects *Objects
	info    Object
	next    int
	part    bytes.Reader
}

func (r *objectReader) Read(p []byte) (int, error) {
	for r.part.Len() == 0 {
		if r.next == r.info.Parts {
			return 0, io.EOF
		}
		data, err := r.objects.getPart(r.ctx, partName(r.info.Name, r.next))
		if err != nil {
			return 0, fmt.Errorf("part %d of %s: %w", r.next, r.info.Name, err)
		}
		r.part.Reset(data)
		r.next++
	}
	return r.part.Read(p)
}

// ErrDamaged says that a part is not what was stored.
var ErrDamaged = errors.New("its bytes are damaged")

// getPart reads a part, message by message, and checks its hash. The consumer that
// the client library makes for each takes longer than most files.
func (o *Objects) getPart(ctx context.Context, name string) (data []byte, err error) {
	info, err := o.info(ctx, name)
	if errors.Is(err, ErrNone) { // the head says that there is one
		return nil, ErrDamaged
	}
	if err != nil {
		return nil, err
	}
	err = o.hub.tryFor(ctx, partTime, func(ctx context.Context) error {
		data = make([]byte, 0, info.Size)
		subject := jetstream.WithGetMsgSubject(o.chunkSubject(info.NUID))
		for seq := uint64(1); uint64(len(data)) < info.Size; {
			m, err := o.stream.GetMsg(ctx, seq, subject)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return ErrDamaged
			}
			if err != nil {
				return err
			}
			data, seq = append(data, m.Data...), m.Sequence+1
		}
		h := sha256.New()
		h.Write(data)
		if info.Size > 0 && jetstream.GetObjectDigestValue(h) != info.Digest {
			return ErrDamaged
		}
		return nil
	})
	return data, err
}

// list returns what the store has, parts and all.
func (o *Objects) list(ctx context.Context) (infos []*jetstream.ObjectInfo, err error) {
	err = o.hub.tryFor(ctx, listTime, func(ctx context.Context) (err error) {
		infos, err = o.store.List(ctx)
		if errors.Is(err, jetstream.ErrNoObjectsFound) {
			return nil
		}
		return err
	})
	return infos, err
}

// List returns the objects, the oldest first. In a cluster it may be a little behind.
func (o *Objects) List(ctx context.Context) ([]Object, error) {
	var all []Object
	infos, err := o.list(ctx)
	for _, i := range infos {
		if strings.Contains(i.Name, "/") {
			continue
		}
		if d, err := describe(i); err == nil {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b Object) int { return a.Time.Compare(b.Time) })
	return all, err
}

// Sweep removes what belongs to no object and is older than the given age: parts
// of objects that were never completed, and bytes of parts that were lost. It
// returns how many there were.
func (o *Objects) Sweep(ctx context.Context, age time.Duration) (int, error) {
	infos, err := o.list(ctx)
	if err != nil {
		return 0, err
	}
	whole, parts := map[string]bool{}, map[string]bool{}
	for _, i := range infos {
		whole[i.Name], parts[i.NUID] = true, true
	}
	n := 0
	for _, i := range infos {
		name, _, part := strings.Cut(i.Name, "/")
		if !part || whole[name] || time.Since(i.ModTime) <= age {
			continue
		}
		if _, err := o.info(ctx, name); err == nil { // it was completed after the list, or the list was behind
			continue
		} else if !errors.Is(err, ErrNone) {
			return n, err
		}
		switch err := o.delete(ctx, i.Name); {
		case err == nil:
			n++
		case !errors.Is(err, ErrNone): // else it has gone, and the list was behind
			return n, err
		}
	}
	more, err := o.sweepChunks(ctx, parts, age)
	return n + more, err
}

// sweepChunks removes the bytes of parts that nothing describes. Those of one that
// is just being stored are young.
func (o *Objects) sweepChunks(ctx context.Context, parts map[string]bool, age time.Duration) (n int, err error) {
	var info *jetstream.StreamInfo
	err = o.hub.tryFor(ctx, listTime, func(ctx context.Context) (err error) {
		info, err = o.stream.Info(ctx, jetstream.WithSubjectFilter(o.chunkSubject("*")))
		return err
	})
	if err != nil {
		return 0, err
	}
	for subject := range info.State.Subjects {
		if parts[subject[strings.LastIndex(subject, ".")+1:]] {
			continue
		}
		var last *jetstream.RawStreamMsg
		err := o.hub.try(ctx, func(ctx context.Context) (err error) {
			last, err = o.stream.GetLastMsgForSubject(ctx, subject)
			return err
		})
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound): // damaged: a server does not remove what it cannot read
			continue
		case err != nil:
			return n, err
		}
		if time.Since(last.Time) > age {
			if err := o.purge(ctx, subject); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// chunkSubject is where the bytes of a part are; its number is the server's.
func (o *Objects) chunkSubject(number string) string { return "$O." + o.name + ".C." + number }

// infoSubject is where a part or an object is described.
func (o *Objects) infoSubject(name string) string {
	return "$O." + o.name + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

func (o *Objects) purge(ctx context.Context, subject string) error {
	return o.hub.try(ctx, func(ctx context.Context) error { return o.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)) })
}

// Delete removes an object, or returns [ErrNone]. It is gone at once, its parts
// after it. Of one whose head was lost the parts go that are there.
func (o *Objects) Delete(ctx context.Context, name string) error {
	info, err := o.Stat(ctx, name)
	if err == nil {
		err = o.delete(ctx, name)
	}
	if err == nil {
		return o.deleteParts(ctx, name, info.Parts)
	}
	if !errors.Is(err, ErrNone) {
		return err
	}
	parts, err := o.looseParts(ctx, name)
	if err != nil {
		return err
	}
	if parts == 0 {
		return ErrNone
	}
	return o.deleteParts(ctx, name, parts)
}

// looseParts is how many parts an object has, as far as they follow each other.
func (o *Objects) looseParts(ctx context.Context, name string) (n int, err error) {
	for ; ; n++ {
		_, err := o.info(ctx, partName(name, n))
		if errors.Is(err, ErrNone) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func (o *Objects) deleteParts(ctx context.Context, name string, parts int) (err error) {
	for i := range parts {
		if e := o.delete(ctx, partName(name, i)); !errors.Is(e, ErrNone) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// delete removes a part or a head, or returns [ErrNone]. It does not leave the note
// that the client library leaves of each.
func (o *Objects) delete(ctx context.Context, name string) error {
	info, err := o.info(ctx, name)
	if err == nil {
		err = o.purge(ctx, o.infoSubject(name))
	}
	if err == nil {
		err = o.purge(ctx, o.chunkSubject(info.NUID))
	}
	return err
}

// messageOverhead is about what a message takes beside what is stored in it: its
// subject, the name of the object and hashes.
const messageOverhead = 400

// Lost estimates how much of [Objects.Bytes] belongs to no object: what was damaged,
// which a server keeps, and what is only just being stored.
func (o *Objects) Lost(ctx context.Context) (uint64, error) {
	infos, err := o.list(ctx)
	if err != nil {
		return 0, err
	}
	var stream *jetstream.StreamInfo
	err = o.hub.try(ctx, func(ctx context.Context) (err error) {
		stream, err = o.stream.Info(ctx)
		return err
	})
	if err != nil {
		return 0, err
	}
	messages, size := uint64(len(infos)), uint64(0)
	for _, i := range infos {
		messages, size = messages+uint64(i.Chunks), size+i.Size
	}
	if stream.State.Msgs <= messages {
		return 0, nil
	}
	known := size + messages*messageOverhead
	return stream.State.Bytes - min(stream.State.Bytes, known), nil
}

// Bytes asks how much the store holds.
func (o *Objects) Bytes(ctx context.Context) (n uint64, err error) {
	err = o.hub.try(ctx, func(ctx context.Context) error {
		status, err := o.store.Status(ctx)
		if err == nil {
			n = status.Size()
		}
		return err
	})
	return n, err
}
