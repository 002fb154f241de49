package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/test/attack"
)

// attacker runs the command over cases.
type attacker struct {
	bin, dir, keep string
	good, only     string
	helper         *helper
	page           page

	cases, runs, findings int
	refused               int             // runs
	seen                  map[string]bool // findings, by what they have in common
}

func (a *attacker) prepare() error {
	var err error
	if a.bin, err = filepath.Abs(a.bin); err != nil {
		return err
	}
	if _, err := os.Stat(a.bin); err != nil {
		return fmt.Errorf("%w: make build", err)
	}
	a.seen = map[string]bool{}
	if a.helper, err = startHelper(); err != nil {
		return err
	}
	a.dir, err = os.MkdirTemp("", "attack-")
	return err
}

// attack gives one case to its commands, and now and then to the page.
func (a *attacker) attack(ctx context.Context, c *attack.Case) {
	if ctx.Err() != nil || !strings.Contains(c.What, a.only) {
		return
	}
	a.cases++
	file := filepath.Join(a.dir, c.Name)
	if err := os.WriteFile(file, c.Data, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		return
	}
	defer os.Remove(file)
	for _, line := range c.Commands {
		r := a.run(c, a.expand(line, file))
		if ctx.Err() != nil {
			return
		}
		a.runs++
		if r.Code == 2 {
			a.refused++
		}
		a.report(c, line, c.Judge(r))
	}
	if c.Page && a.cases%5 == 0 {
		a.page.attack(a, c)
	}
}

// expand makes the arguments of a command line.
func (a *attacker) expand(line, file string) []string {
	words := strings.NewReplacer("FILE", file, "GOOD", a.good, "OUT", filepath.Join(a.dir, "out"))
	var args []string
	for _, arg := range strings.Fields(line) {
		args = append(args, words.Replace(arg))
	}
	return args
}

// maxPrinted is how much of what is printed is looked at.
const maxPrinted = 64 << 20

// run runs the command.
func (a *attacker) run(c *attack.Case, args []string) *attack.Result {
	stdout, stderr := filepath.Join(a.dir, "stdout"), filepath.Join(a.dir, "stderr")
	limit := int(c.Time().Seconds()) + 1
	r := &attack.Result{Args: args, Files: map[string][]byte{}}
	out, err := a.helper.run(order{
		Args: append([]string{a.bin}, args...), Env: append(os.Environ(), "NO_COLOR=1", "HOME="+a.dir), Stdout: stdout, Stderr: stderr, Seconds: limit,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		return r
	}
	r.Code, r.CPU, r.Memory = out.Code, out.CPU, out.Memory
	r.Stdout, r.Stderr = begin(stdout), begin(stderr)
	r.Cut = len(r.Stdout) == maxPrinted
	r.Killed = r.Code < 0 && r.CPU >= c.Time()*9/10
	written, _ := filepath.Glob(filepath.Join(a.dir, "out*"))
	for _, name := range written {
		if strings.HasSuffix(name, ".html") {
			r.Files[name], _ = os.ReadFile(name)
		}
		os.RemoveAll(name)
	}
	parts, _ := filepath.Glob(filepath.Join(a.dir, ".*.part"))
	for _, part := range parts {
		r.Stderr += "\na temporary file is left: " + part
		os.Remove(part)
	}
	return r
}

// begin returns the beginning of a file.
func begin(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxPrinted))
	return string(text)
}

// capped keeps the beginning of what is written.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if c.Len() < maxPrinted {
		c.Buffer.Write(p)
	}
	return len(p), nil
}

// place finds where a crash is in the sources.
var place = regexp.MustCompile(`ashlar[@./a-zA-Z_-]*/([a-z]+/[a-z_]+\.go:\d+)`)

// report prints what is wrong, and keeps the input of the first of its kind.
func (a *attacker) report(c *attack.Case, line string, wrong []string) {
	for _, w := range wrong {
		a.findings++
		command, _, _ := strings.Cut(line, " ")
		kind, _, _ := strings.Cut(w, ":")
		if m := place.FindStringSubmatch(w); m != nil {
			kind += " " + m[1]
		} else if strings.HasPrefix(kind, "crash") {
			_, said, _ := strings.Cut(w, ": ")
			said, _, _ = strings.Cut(said, "\n")
			kind += " " + said
		}
		key := command + ", " + kind
		if a.seen[key] {
			continue
		}
		a.seen[key] = true
		dir := filepath.Join(a.keep, fmt.Sprintf("%03d", len(a.seen)))
		text := fmt.Sprintf("%s\n%s\n%s\n", c.What, line, w)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, c.Name), c.Data, 0o644), os.WriteFile(filepath.Join(dir, "finding.txt"), []byte(text), 0o644)); err != nil {
			fmt.Fprintln(os.Stderr, "attack:", err)
		}
		fmt.Printf("%s: %s: %s: %.300s\n", dir, line, c.What, w)
	}
}
