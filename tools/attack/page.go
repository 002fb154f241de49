package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/internal/test/attack"
)

// page is the server of ashlar view, to which files are dropped.
type page struct {
	cmd      *exec.Cmd
	stderr   capped
	address  string
	requests int
	rand     *rand.Rand
}

// The questions of the page, and what they may be asked with.
var (
	questions = []string{
		"meta", "stats", "explain", "timeline", "curve", "segments", "events", "stacks", "legend", "window", "at", "find", "matches", "alloc", "between", "changes",
		"check", "whatif", "tune", "export", "pair", "ranks", "fix", "odd",
	}
	parameters = []string{
		"run", "stream", "stack", "width", "until", "q", "pool", "pick", "peak", "max_size", "like", "from", "event", "dir", "color", "after", "ymin", "ymax", "what",
		"view", "to", "sites", "since", "row", "never_freed", "min_size", "min", "max", "limit", "height", "frames", "fold", "device_memory", "count", "area", "alive",
		"addr", "set", "other", "a", "b", "kind", "format",
	}
	answers = []string{
		"0", "1", "-1", "100", "4294967296", "9223372036854775807", "18446744073709551616", "NaN", "1e308", "", "abc", "0x10", "\x1b[31m", "1GiB", "true",
		"expandable_segments:True", "release_lock_on_cudamalloc:True", "max_split_size_mb:20", "<script>", "0.5", "1,2", "python",
	}
)

func (p *page) start(a *attacker) error {
	p.rand = rand.New(rand.NewPCG(uint64(a.cases), 5))
	p.cmd = exec.Command(a.bin, "view", "--no-open", a.good)
	p.stderr.Reset()
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if i := strings.Index(lines.Text(), "http://"); i >= 0 {
			p.address = strings.TrimSpace(lines.Text()[i:])
			go io.Copy(io.Discard, out)
			return nil
		}
	}
	return fmt.Errorf("ashlar view says no address")
}

// ask sends a request and returns its status and answer; 0 if there was none.
func (p *page) ask(method, path string, body []byte) (int, []byte) {
	p.requests++
	r, err := http.NewRequest(method, p.address+"api/"+path, bytes.NewReader(body))
	if err != nil {
		return 400, nil
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	client := http.Client{Timeout: 5 * time.Minute}
	answer, err := client.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxPrinted))
	return answer.StatusCode, text
}

// attack drops a file, asks about it, and removes it.
func (p *page) attack(a *attacker, c *attack.Case) {
	if p.cmd == nil {
		if err := p.start(a); err != nil {
			a.report(c, "view", []string{"crash: " + err.Error() + p.stderr.String()})
			return
		}
	}
	judge := func(path string, status int, text []byte) {
		if status >= 500 && status != http.StatusServiceUnavailable || status == 0 {
			a.report(c, "view "+path, []string{fmt.Sprintf("crash: status %d, %.300s%.2000s", status, text, p.stderr.String())})
		}
	}
	status, text := p.ask("POST", "runs?name="+url.QueryEscape(c.Name), c.Data)
	judge("POST", status, text)
	var taken struct {
		Runs []int `json:"runs"`
	}
	run := 1
	if json.Unmarshal(text, &taken) == nil && len(taken.Runs) > 0 {
		run = taken.Runs[0]
	}
	for range 12 {
		q := url.Values{"run": {fmt.Sprint(run)}}
		for range p.rand.IntN(5) {
			q.Set(parameters[p.rand.IntN(len(parameters))], answers[p.rand.IntN(len(answers))])
		}
		question := questions[p.rand.IntN(len(questions))]
		status, text := p.ask("GET", question+"?"+q.Encode(), nil)
		judge(question+"?"+q.Encode(), status, text)
		if status == 0 {
			break
		}
	}
	for _, id := range taken.Runs {
		p.ask("DELETE", fmt.Sprintf("runs?run=%d", id), nil)
	}
	if p.cmd.Process.Signal(syscall.Signal(0)) != nil || strings.Contains(p.stderr.String(), "fatal error") {
		a.report(c, "view", []string{"crash: the server ended: " + p.stderr.String()})
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// close ends the server, which has to end by itself.
func (p *page) close(a *attacker) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState.ExitCode() < 0 {
		a.report(&attack.Case{Name: "none", What: "the end"}, "view", []string{"exit code: " + err.Error()})
	}
}
