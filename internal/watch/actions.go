package watch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// Alarm is an alarm that was raised.
type Alarm struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Run       string   `json:"run"`
	Attempt   int      `json:"attempt"`
	Rank      int      `json:"rank"`
	GPU       int      `json:"gpu"`
	Session   string   `json:"session"`
	Rule      string   `json:"rule"`
	RaisedUS  int64    `json:"raised_us"`
	ClearedUS *int64   `json:"cleared_us"` // null while it is raised
	Value     float64  `json:"value"`      // when it was raised
	ValueText string   `json:"value_text"` // the same with its unit
	Actions   []Action `json:"actions"`
	Snapshot  *string  `json:"snapshot"` // its name in the store; null: none
	// AtHub reports whether it was raised by a server that the job does not send
	// to: it got the samples by --forward.
	AtHub bool `json:"at_hub"`
}

// Action is what was done about an alarm.
type Action struct {
	Action string `json:"action"`
	TimeUS int64  `json:"time_us"`
	Result string `json:"result"` // empty while it is under way
	// Before and After are the reserved bytes around what the job did; null if
	// they are not known.
	Before *int64 `json:"before"`
	After  *int64 `json:"after"`
}

// ask is what a job is asked to do.
type ask struct {
	ID    string    `json:"id"`
	What  string    `json:"what"`
	since time.Time // when it was first asked
}

// reply is the answer to a POST.
type reply struct {
	Stored int64 `json:"stored"`
	Ask    []ask `json:"ask"`
}

const (
	actionGap   = 5 * time.Minute // between two of one kind for one alarm and job
	askTime     = 10 * time.Minute
	commandTime = 30 * time.Second
	maxOutput   = 1000 // bytes of a command's output that are kept
	maxAlarms   = 10_000
)

// readAlarms reads those that were raised before this process began.
func (s *Server) readAlarms(ctx context.Context) error {
	for m, err := range s.store.alarms.All(ctx, "*") {
		if err != nil {
			return err
		}
		a := new(Alarm)
		if json.Unmarshal(m.Data, a) != nil {
			continue
		}
		if a.ValueText == "" { // of a version that did not write it
			a.ValueText = strconv.FormatFloat(a.Value, 'g', 4, 64)
		}
		s.alarms[m.Subject] = a
		if !s.store.hub.Local() && !a.AtHub {
			continue // of another server
		}
		for _, do := range a.Actions {
			key, at := actionKey(a.Session, a.Name, do.Action), time.UnixMicro(do.TimeUS)
			if !strings.HasPrefix(do.Result, leftOut) && at.After(s.acted[key]) {
				s.acted[key] = at
			}
		}
	}
	return nil
}

// leftOut begins what is said of an action that was not done.
const leftOut = "left out: "

// actionKey is by what it is noted when an action was last done.
func actionKey(session, alarm, action string) string { return session + " " + alarm + " " + action }

// act notes changes of alarms, and does what they ask for.
func (s *Server) act(ctx context.Context, changes []change) {
	for _, c := range changes {
		a, commands := s.note(c)
		if a == nil {
			continue
		}
		s.saveAlarm(ctx, a)
		for _, i := range commands {
			s.work.Go(func() { s.command(ctx, a, i, c.rule) })
		}
	}
}

// note changes the list of alarms, and asks the job. It returns the alarm, and
// which of its actions are commands to be run.
func (s *Server) note(c change) (a *Alarm, commands []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[c.who.session]
	if !c.raised {
		a := s.open(c)
		if a == nil || one != nil && s.foreign(one) && !a.AtHub {
			return nil, nil // the server that raised it clears it
		}
		at := c.at.UnixMicro()
		a.ClearedUS = &at
		if c.rule.logs() {
			s.opts.Log(fmt.Sprintf("alarm %s is cleared: %s rank %d, value %s", a.Name, a.Run, a.Rank, c.rule.write(c.value)))
		}
		return a, nil
	}
	if one == nil || one.hello.Ended || len(s.alarms) >= maxAlarms {
		return nil, nil
	}
	if s.open(c) != nil {
		return nil, nil // by the job's own server, or by a rank that is gone
	}
	h := &one.hello
	a = &Alarm{
		AtHub: s.foreign(one),
		ID:    fmt.Sprintf("%s-%d-%s-%d", h.Session, max(c.who.gpu, 0), c.rule.Name, c.at.UnixMicro()),
		Name:  c.rule.Name, Run: h.Run, Attempt: h.Attempt, Rank: h.Rank, GPU: c.who.gpu, Session: h.Session, Rule: c.rule.text,
		RaisedUS: c.at.UnixMicro(), Value: c.value, ValueText: c.rule.write(c.value), Actions: []Action{},
	}
	s.alarms[a.ID] = a
	now := s.opts.Now()
	for i, do := range c.rule.actions {
		done := Action{Action: do.String(), TimeUS: now.UnixMicro()}
		key := actionKey(h.Session, c.rule.Name, do.String())
		last, acted := s.acted[key]
		switch {
		case do.what == "log":
			s.opts.Log(fmt.Sprintf("alarm %s: %s rank %d, value %s (%s)", a.Name, a.Run, a.Rank, a.ValueText, c.rule.text))
			done.Result = "logged"
		case acted && now.Sub(last) < actionGap:
			done.Result = fmt.Sprintf(leftOut+"the last one was %.0f s ago", now.Sub(last).Seconds())
		case do.what == "run":
			s.acted[key] = now
			commands = append(commands, i)
			s.running[actionID(a, i)] = true
		case a.AtHub:
			done.Result = leftOut + "the job sends to another ashlar watch, whose alarms can ask it"
		case !slices.Contains(h.Allow, do.what):
			done.Result = leftOut + "the job does not allow it"
		default:
			s.acted[key] = now
			one.asks = append(one.asks, ask{actionID(a, i), do.what, now})
		}
		a.Actions = append(a.Actions, done)
	}
	return a, commands
}

func (r *Rule) logs() bool {
	return slices.ContainsFunc(r.actions, func(a action) bool { return a.what == "log" })
}

// open finds the alarm that a change clears.
func (s *Server) open(c change) *Alarm {
	for _, a := range s.alarms {
		same := a.Session == c.who.session && a.GPU == c.who.gpu || c.rule.perRun && a.Run == c.run
		if a.Name == c.rule.Name && a.ClearedUS == nil && same {
			return a
		}
	}
	return nil
}

// clearAll ends the alarms of a job that has ended, and returns them; one of the
// whole run goes on while another rank raises it. The server is locked.
func (s *Server) clearAll(session, run string, now time.Time) (over []*Alarm) {
	at := now.UnixMicro()
	for _, a := range s.alarms {
		perRun, raised := s.engine.ofRun(a.Run, a.Name)
		if one := s.sessions[a.Session]; one != nil && s.foreign(one) && !a.AtHub {
			continue // its server clears it
		}
		if a.ClearedUS == nil && !raised && (a.Session == session || perRun && a.Run == run) {
			a.ClearedUS = &at
			over = append(over, a)
		}
	}
	return over
}

// saveAlarm stores an alarm and shows it.
func (s *Server) saveAlarm(ctx context.Context, a *Alarm) {
	s.mu.Lock()
	copied := *a
	copied.Actions = slices.Clone(a.Actions)
	s.mu.Unlock()
	err := s.putAlarm(ctx, &copied)
	if errors.Is(err, hub.ErrMoved) && copied.AtHub {
		return // the job's own server was first: its alarm comes
	}
	if err != nil {
		s.opts.Log(fmt.Sprintf("the alarm %s of %s is not stored: %v", a.Name, a.Run, err))
	}
	if s.opts.Alarmed != nil {
		s.opts.Alarmed(copied)
	}
}

// putAlarm stores an alarm. One that is raised here for a job of another server does
// not take the place of that server's.
func (s *Server) putAlarm(ctx context.Context, a *Alarm) error {
	if a.AtHub {
		var there Alarm
		if m, err := s.store.alarms.Last(ctx, a.ID); err == nil && json.Unmarshal(m.Data, &there) == nil && !there.AtHub {
			return hub.ErrMoved
		}
	}
	return put(ctx, s.store.alarms, a.ID, a)
}

// foreign reports whether a job sends to another server. The server is locked.
func (s *Server) foreign(one *session) bool { return !one.mine && !s.store.hub.Local() }

// command runs a command, which gets the alarm as JSON.
func (s *Server) command(ctx context.Context, a *Alarm, i int, r *Rule) {
	ctx = context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeout(ctx, s.commandTime)
	defer cancel()
	s.mu.Lock()
	in, err := json.Marshal(a)
	s.mu.Unlock()
	if err != nil {
		return // an alarm always is JSON
	}
	shell := []string{"/bin/sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/c"}
	}
	cmd := exec.CommandContext(limited, shell[0], shell[1], r.actions[i].command)
	cmd.Stdin = bytes.NewReader(in)
	cmd.WaitDelay = time.Second
	endWithChildren(cmd)
	out, err := cmd.CombinedOutput()
	result := "exit status 0"
	if err != nil {
		result = err.Error()
	}
	if limited.Err() != nil {
		result = fmt.Sprintf("ended after %v", s.commandTime)
	}
	if text := strings.TrimSpace(clean(string(out[:min(len(out), maxOutput)]), maxText)); text != "" {
		result += ": " + text
	}
	s.mu.Lock()
	a.Actions[i].Result = result
	delete(s.running, actionID(a, i))
	s.mu.Unlock()
	s.saveAlarm(ctx, a)
}

// endLost notes commands whose server has stopped while they ran: they are not run
// again, and nobody knows what became of them. In a cluster another server may still
// run one, until its time is over.
func (s *Server) endLost(ctx context.Context, now time.Time) {
	var lost []*Alarm
	s.mu.Lock()
	for _, a := range s.alarms {
		one := s.sessions[a.Session]
		ours := s.store.hub.Local() || a.AtHub || one != nil && one.mine
		for i := range a.Actions {
			do := &a.Actions[i]
			over := s.store.hub.Local() || now.Sub(time.UnixMicro(do.TimeUS)) > 2*commandTime
			if ours && over && do.Result == "" && strings.HasPrefix(do.Action, runPrefix) && !s.running[actionID(a, i)] {
				do.Result = "not known: the server stopped while it ran"
				lost = append(lost, a)
			}
		}
	}
	s.mu.Unlock()
	for _, a := range lost {
		s.saveAlarm(ctx, a)
	}
}

// actionID names an action of an alarm.
func actionID(a *Alarm, i int) string { return fmt.Sprintf("%s/%d", a.ID, i) }

// result is the body of POST /v1/result: what became of an ask.
type result struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	ID      string `json:"id"`
	Result  string `json:"result"`
	Before  *int64 `json:"before"`
	After   *int64 `json:"after"`
}

var errNoAsk = errors.New("the session was not asked for that")

// finish notes what a job did. It returns the alarm.
func (s *Server) finish(ctx context.Context, r result) error {
	a, err := s.asked(r.Session, r.ID, func(a *Alarm, do *Action) {
		do.Result, do.Before, do.After = clean(r.Result, maxText), r.Before, r.After
	})
	if err == nil {
		s.saveAlarm(ctx, a)
	}
	return err
}

// asked calls f with the action that a job was asked for, with the lock held, and
// takes the ask back.
func (s *Server) asked(session, id string, f func(*Alarm, *Action)) (*Alarm, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[session]
	if one == nil {
		return nil, errNoAsk
	}
	i := slices.IndexFunc(one.asks, func(k ask) bool { return k.ID == id })
	a, do := s.actionOf(id)
	if i < 0 || a == nil {
		return nil, errNoAsk
	}
	one.asks = slices.Delete(one.asks, i, i+1)
	f(a, do)
	return a, nil
}

// actionOf finds what an ask is for; nil if there is no such alarm. The server is
// locked.
func (s *Server) actionOf(id string) (*Alarm, *Action) {
	alarm, number, _ := strings.Cut(id, "/")
	a := s.alarms[alarm]
	n, err := strconv.Atoi(number)
	if err != nil || a == nil || n < 0 || n >= len(a.Actions) {
		return nil, nil
	}
	return a, &a.Actions[n]
}

// askAgain takes a job as one that sends here. If it has not before, it is asked for what a
// server that is gone had asked it for. The server is locked.
func (s *Server) askAgain(one *session) {
	if one.mine {
		return
	}
	one.mine = true
	for _, a := range s.alarms {
		if a.Session != one.hello.Session || a.AtHub {
			continue
		}
		for i, do := range a.Actions {
			again := ask{actionID(a, i), do.Action, time.UnixMicro(do.TimeUS)}
			known := slices.ContainsFunc(one.asks, func(k ask) bool { return k.ID == again.ID })
			if do.Result == "" && !known && slices.Contains(one.hello.Allow, do.Action) {
				one.asks = append(one.asks, again)
			}
		}
	}
}

// giveUp takes back asks that nobody will answer any more, and returns their alarms.
// The server is locked.
func (s *Server) giveUp(one *session, now time.Time) (alarms []*Alarm) {
	one.asks = slices.DeleteFunc(one.asks, func(k ask) bool {
		why := ""
		switch {
		case one.hello.Ended:
			why = "the job ended before it was done"
		case now.Sub(k.since) > askTime:
			why = fmt.Sprintf("the job did not do it within %v", askTime)
		default:
			return false
		}
		if a, do := s.actionOf(k.ID); a != nil {
			do.Result = why
			alarms = append(alarms, a)
		}
		return true
	})
	return alarms
}

// headBytes is how much of a snapshot is looked at before it is stored.
const headBytes = 64 << 10

// checkHead returns a *[snapshot.FormatError] if what comes is no snapshot, as far
// as its beginning tells, and why that cannot be read.
func checkHead(ctx context.Context, body *bufio.Reader) error {
	head, err := body.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var other *snapshot.FormatError
	if _, err := snapshot.Read(ctx, "the body", bytes.NewReader(head), snapshot.Options{}); errors.As(err, &other) {
		return other
	}
	return nil // the rest may be cut off here
}

// takeSnapshot stores the snapshot that a job was asked for.
func (s *Server) takeSnapshot(ctx context.Context, session, id string, body io.Reader) error {
	s.mu.Lock()
	one := s.sessions[session]
	known := one != nil && slices.ContainsFunc(one.asks, func(k ask) bool { return k.ID == id && k.What == "snapshot" })
	stored := StoredSnapshot{Name: strings.ReplaceAll(id, "/", "-") + ".pickle"}
	if known {
		stored.Job = one.hello
	}
	s.mu.Unlock()
	if !known {
		return errNoAsk
	}
	name, hash, read := stored.Name, sha256.New(), &limitedReader{body, s.opts.MaxSnapshot}
	whole := bufio.NewReaderSize(read, headBytes)
	err := checkHead(ctx, whole)
	var other *snapshot.FormatError
	if errors.As(err, &other) {
		return err
	}
	if err == nil {
		err = s.store.snapshots.Put(ctx, name, io.TeeReader(whole, hash))
	}
	if err != nil {
		if errors.Is(err, errTooLong) {
			return errTooLong
		}
		return unavailable{err}
	}
	if s.opts.Stored != nil {
		stored.SHA256, stored.Bytes = hex.EncodeToString(hash.Sum(nil)), s.opts.MaxSnapshot-read.left
		if err := s.opts.Stored(ctx, stored); err != nil {
			s.opts.Log(fmt.Sprintf("the snapshot %s is not in the fleet: %v", name, err))
		}
	}
	a, err := s.asked(session, id, func(a *Alarm, do *Action) {
		do.Result, a.Snapshot = "stored as "+name, &name
	})
	if err == nil {
		s.saveAlarm(ctx, a)
	}
	return err
}
