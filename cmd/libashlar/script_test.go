package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain puts everything that is built into one place and removes it.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "libashlar-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Setenv("TMPDIR", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// program is a program of testdata/check, compiled once.
func program(t *testing.T, name string) string {
	t.Helper()
	compiler := map[string]string{".c": "cc", ".cpp": "g++"}[filepath.Ext(name)]
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no %s: %s is not tested", compiler, name)
	}
	built, _ := programs.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "check")
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, "program")
		flags := append(sanitizers(), "-O1", "-Wall", "-Wextra", "-Werror", "-o", out, filepath.Join("testdata/check", name), "-ldl", "-pthread")
		text, err := exec.Command(compiler, flags...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s %s: %w\n%s", compiler, name, err, text)
		}
		return out, nil
	}))
	path, err := built.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var programs sync.Map

// run runs a program on the library over the simulated driver and returns what
// it wrote. Further settings of the environment may follow.
func run(t *testing.T, name, input string, env ...string) (stdout, stderr string) {
	t.Helper()
	library := shimLibrary(t)
	cmd := exec.Command(program(t, name), library)
	// For sanitizers, what only Go's memory points at would be lost.
	cmd.Env = append([]string{driverVariable + "=sim", "PATH=" + os.Getenv("PATH"), "ASAN_OPTIONS=detect_leaks=0"}, env...)
	cmd.Stdin = strings.NewReader(input)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%.2000s%.2000s", name, err, out.String(), complaints.String())
	}
	return out.String(), complaints.String()
}

// script is a row of commands for testdata/check/script.c with what is expected
// of the answers.
type script struct {
	t      *testing.T
	lines  strings.Builder
	checks []func(answer string)
}

func (s *script) say(check func(answer string), format string, args ...any) {
	fmt.Fprintf(&s.lines, format+"\n", args...)
	s.checks = append(s.checks, check)
}

// expect wants the answer to be a text.
func (s *script) expect(want, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.say(func(got string) {
		if got != want {
			s.t.Errorf("%s\ngot  %s\nwant %s", line, got, want)
		}
	}, "%s", line)
}

// contains wants the answer to have some texts in it.
func (s *script) contains(want []string, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.say(func(got string) {
		for _, w := range want {
			if !strings.Contains(got, w) {
				s.t.Errorf("%s\ngot  %s\nwant %s", line, got, w)
			}
		}
	}, "%s", line)
}

// address wants the answer to be an address and passes it on.
func (s *script) address(use func(addr uint64), format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.say(func(got string) {
		addr, err := strconv.ParseUint(got, 10, 64)
		if err != nil || addr == 0 {
			s.t.Errorf("%s: got %s", line, got)
		}
		if use != nil {
			use(addr)
		}
	}, "%s", line)
}

// run runs the commands and checks the answers. It returns what went to
// standard error.
func (s *script) run(env ...string) string {
	s.t.Helper()
	stdout, stderr := run(s.t, "script.c", s.lines.String(), env...)
	lines := bufio.NewScanner(strings.NewReader(stdout))
	lines.Buffer(nil, 64<<20)
	for _, check := range s.checks {
		if !lines.Scan() {
			s.t.Fatalf("the program stopped early: %s", stderr)
		}
		check(lines.Text())
	}
	return stderr
}

// decode reads a JSON answer.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return v
}

// flatten is the reverse of nested.
func flatten(prefix string, v any, out map[string]int64) map[string]int64 {
	if m, ok := v.(map[string]any); ok {
		for k, x := range m {
			flatten(prefix+"."+k, x, out)
		}
		return out
	}
	out[prefix[1:]] = int64(v.(float64))
	return out
}
