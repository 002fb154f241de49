package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
)

// explainJSON runs the command and reads its answer.
func explainJSON(t *testing.T, args ...string) *explain.Report {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), stdio{in: strings.NewReader(""), out: &stdout, err: &stderr}, append([]string{"explain", "--json"}, args...))
	if code != exitOK || stderr.Len() > 0 {
		t.Fatalf("status %d, stderr %q", code, &stderr)
	}
	var r explain.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// What the recorder wrote beside a snapshot counts, unless a flag says
// otherwise.
func TestExplainSide(t *testing.T) {
	const file = "../../snapshot/recorder/testdata/oom.pickle"
	r := explainJSON(t, file)
	if r.Limit.Source != "recorded" || *r.Limit.Max != 40<<20 || r.Evidence.DeviceTotal == nil {
		t.Errorf("limit %+v, device %v", r.Limit, r.Evidence.DeviceTotal)
	}
	r = explainJSON(t, file, "--limit", "50MiB")
	if r.Limit.Source != "given" || *r.Limit.Max != 50<<20 {
		t.Errorf("limit %+v", r.Limit)
	}
}

// A log may have a dump and a message; together they are exact.
func TestExplainJoined(t *testing.T) {
	raw, err := os.ReadFile("../../testdata/variety/expand_tight.side.json")
	if err != nil {
		t.Fatal(err)
	}
	var both struct {
		Message string
		Stats   json.RawMessage `json:"memory_stats"`
	}
	if err := json.Unmarshal(raw, &both); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	message, stats := filepath.Join(dir, "message.txt"), filepath.Join(dir, "stats.json")
	for name, data := range map[string][]byte{message: []byte(both.Message), stats: both.Stats} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alone, joined := explainJSON(t, message), explainJSON(t, message, "--stats", stats)
	const live = 9293174784
	if *alone.Evidence.Live == live || *joined.Evidence.Live != live || joined.Trigger != explain.Capacity || joined.Confidence != explain.Certain {
		t.Errorf("live %d and %d, %s %s", *alone.Evidence.Live, *joined.Evidence.Live, joined.Trigger, joined.Confidence)
	}
	flags := explainJSON(t, "--message", message, "--stats", stats)
	if *flags.Evidence.Live != live {
		t.Errorf("live %d", *flags.Evidence.Live)
	}
}

func TestExplainReportsFailures(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{{"explain", died}, {"explain", "--json", died}} {
		var stderr bytes.Buffer
		if code := execute(t.Context(), stdio{out: brokenWriter{}, err: &stderr}, args); code != exitInput || stderr.String() != "ashlar: writing the result: disk full\n" {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
		stderr.Reset()
		if code := execute(stopped, stdio{out: io.Discard, err: &stderr}, args); code != exitInput || stderr.String() != "ashlar: interrupted\n" {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
		out := &closedPipe{}
		stderr.Reset()
		if code := execute(t.Context(), stdio{out: out, err: &stderr}, args); code != exitOK || stderr.Len() > 0 || out.writes == 0 {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
	}
}

// TestExplainInterrupted: the work ends soon after the signal, wherever it is.
func TestExplainInterrupted(t *testing.T) {
	for _, after := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		var stdout, stderr bytes.Buffer
		code := execute(ctx, stdio{out: &stdout, err: &stderr}, []string{"explain", "../../testdata/snapshots/serve_generate-tight-default.pickle.gz"})
		cancel()
		if code != exitInput || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("after %v: status %d, %d bytes, stderr %q", after, code, stdout.Len(), &stderr)
		}
	}
}

// The seconds appear on a terminal after the first, and are gone at the end.
func TestShowSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		stop := showSeconds(stdio{err: &stderr, terminal: true}, "s: replaying")
		time.Sleep(3*time.Second + 300*time.Millisecond)
		synctest.Wait()
		stop()
		synctest.Wait()
		if s := stderr.String(); !strings.Contains(s, "ashlar: 3 s: replaying") || !strings.HasSuffix(s, "\r\x1b[K") || strings.Contains(s, "0 s:") {
			t.Errorf("%q", s)
		}
	})
}

// Settings may be pasted as they stand in a script.
func TestPastedSettings(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"max_split_size_mb:128", "max_split_size_mb:128"},
		{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", "max_split_size_mb:128"},
		{"export PYTORCH_ALLOC_CONF=\"expandable_segments:True\"", "expandable_segments:True"},
		{" export PYTORCH_HIP_ALLOC_CONF='a:1,b:2' ; ", "a:1,b:2"},
		{"PYTORCH_CUDA_ALLOC_CONF=", ""},
		{"export OTHER=1", "export OTHER=1"},
	} {
		if got := pastedSettings(tt.text); got != tt.want {
			t.Errorf("%q: %q", tt.text, got)
		}
	}
}
