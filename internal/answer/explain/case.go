package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	memorystats "github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// messageInput reads --message: a file if there is one of that name, else the
// text itself.
func messageInput(ctx context.Context, std stdio, text string) (*input, error) {
	info, err := os.Stat(text)
	if err == nil && !info.IsDir() || text == "-" {
		in, err := readInput(ctx, std, text)
		if err == nil && len(in.messages) == 0 {
			err = failure{fmt.Errorf("--message: %s has no out-of-memory message; paste the whole error", in.name)}
		}
		return in, err
	}
	all, parseErr := message.Parse(text)
	if parseErr == nil {
		return &input{name: "the message", kind: kindMessage, messages: all}, nil
	}
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(text, " \n") {
		return nil, failure{fmt.Errorf("--message: %s is neither a file nor an out-of-memory message; check the name, or paste the whole error", text)}
	}
	return nil, failure{errors.New("--message: no out-of-memory message in the text; paste the whole error, from \"CUDA out of memory\" on")}
}

// lastMessage takes the last message about the device.
func (e *explained) lastMessage(in *input) error {
	var found []*message.OOM
	for _, m := range in.messages {
		if e.device < 0 || m.Device < 0 || m.Device == e.device {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return failure{fmt.Errorf("%s has no out-of-memory message about device %d; leave out --device", in.name, e.device)}
	}
	e.Message = found[len(found)-1]
	about := "out-of-memory message"
	if e.Message.Version != "" {
		about += " of PyTorch " + e.Message.Version
	}
	if e.Message.Device >= 0 {
		about += fmt.Sprintf(", GPU %d", e.Message.Device)
	}
	e.about = append(e.about, about)
	if len(found) > 1 {
		e.notes = append(e.notes, fmt.Sprintf("%s has %s out-of-memory messages; the last one, on line %s, is explained",
			in.name, count(len(found)), count(e.Message.Line)))
	}
	return nil
}

// lastDump takes the last dump about the device of the failure.
func (e *explained) lastDump(in *input) error {
	device := e.device
	if device < 0 && e.Message != nil {
		device = e.Message.Device
	}
	var found []*memorystats.Dump
	for _, d := range in.dumps {
		if device < 0 || d.Device < 0 || d.Device == device {
			found = append(found, d)
		}
	}
	if len(found) == 0 {
		return failure{fmt.Errorf("%s has no dump of device %d; give that of the device that failed", in.name, device)}
	}
	e.Stats = found[len(found)-1]
	about := "dump of memory_stats()"
	if e.Stats.Device >= 0 {
		about += fmt.Sprintf(" of device %d", e.Stats.Device)
	}
	e.about = append(e.about, about)
	if len(found) > 1 {
		e.notes = append(e.notes, fmt.Sprintf("%s has %s dumps of memory_stats(); the last one, on line %s, is used", in.name, count(len(found)), count(e.Stats.Line)))
	}
	return nil
}

// snapshot adds a snapshot and what the recorder wrote into it.
func (e *explained) snapshot(ctx context.Context, f *snapshot.File) error {
	e.Side = recorder.Read(f.Extra)
	t, why, err := e.pick(f)
	if err != nil {
		return failure{err}
	}
	e.device, e.why = t.Device, why
	about := why
	if about == "" {
		about = fmt.Sprintf("device %d", t.Device)
	}
	e.about = append([]string{about, count(t.Events.Len()) + " events"}, e.about...)
	if s := e.Side; s != nil {
		e.about = append(e.about, "with what python/ashlar.py wrote beside them")
		e.notes = append(e.notes, s.Warnings...)
		if all, err := message.Parse(s.Message); e.Message == nil && err == nil {
			e.Message = all[len(all)-1]
		}
		if e.Stats == nil {
			e.Stats = s.MemoryStats[t.Device]
		}
	}
	if t.Events.Len() > 0 || e.Message != nil && sameMoment(t, e.Message) {
		e.Program, err = checkProgram(ctx, f, t)
		return err
	}
	note := f.Name + " has no events (recording was off): it tells only what was there when it was written, which ashlar stats shows"
	if e.Message == nil && e.Stats == nil {
		e.Stats = stateOf(t)
	} else {
		note += "; the message, or the dump, is explained without it"
	}
	e.notes = append(e.notes, note)
	return nil
}

// stateOf is the state at the end of a trace, as far as memory_stats() would
// tell it.
func stateOf(t *trace.Trace) *memorystats.Dump {
	var reserved, allocated, active, requested uint64
	for i := range t.Segments {
		s := &t.Segments[i]
		reserved, allocated, active, requested = reserved+s.TotalSize, allocated+s.AllocatedSize, active+s.ActiveSize, requested+s.RequestedSize
	}
	return memorystats.FromValues(t.Device, map[string]int64{
		"reserved_bytes.all.current": int64(reserved), "allocated_bytes.all.current": int64(allocated),
		"active_bytes.all.current": int64(active), "requested_bytes.all.current": int64(requested),
	})
}

// pick chooses the device: that of the message, if nobody said which.
func (e *explained) pick(f *snapshot.File) (t *trace.Trace, why string, err error) {
	if m := e.Message; e.device < 0 && m != nil && m.Device >= 0 {
		if t, _, err := stats.Pick(f, m.Device, false); err == nil {
			return t, "", nil
		}
		e.notes = append(e.notes, fmt.Sprintf("the message is about device %d, of which %s has nothing", m.Device, f.Name))
	}
	t, why, err = stats.Pick(f, e.device, false)
	if err == nil && t.Host {
		return nil, "", fmt.Errorf("%s: host memory has another allocator, which is not explained", f.Name)
	}
	return t, why, err
}

// sameMoment tells whether the blocks of a file are those of the failure that a
// message tells of, by what is allocated.
func sameMoment(t *trace.Trace, m *message.OOM) bool {
	var sum uint64
	for i := range t.Segments {
		sum += t.Segments[i].AllocatedSize
	}
	if m.AllocatedBytes == nil {
		return false
	}
	live := *m.AllocatedBytes
	if m.PrivatePoolBytes != nil {
		live = live.Sub(*m.PrivatePoolBytes)
	}
	return live.Contains(sum)
}
