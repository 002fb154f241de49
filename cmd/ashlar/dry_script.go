package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/internal/atomicfile"
	"github.com/ashlar-mem/ashlar/internal/dry"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/python"
)

// runScript runs the script and answers about it.
func (o *dryOptions) runScript(ctx context.Context, std stdio) error {
	s, err := o.newScript(std)
	if err != nil {
		return err
	}
	defer s.close()
	s.kill = untilHurried(ctx)
	out := dry.Document{File: strings.Join(o.script, " ")}
	var r *dry.Recording
	if o.max != "" {
		out.Max, r, err = o.findLargest(ctx, std, s)
	} else {
		r, err = s.Record(ctx, nil)
	}
	if err != nil {
		return err
	}
	q, err := o.question(std, r)
	if err != nil {
		return err
	}
	out.Exit = s.exit
	if ctx.Err() != nil {
		std.errorf("interrupted: the answer is about what was recorded until then")
	}
	return o.answer(context.WithoutCancel(ctx), std, q, &out)
}

// findLargest finds the largest value with which the script fits.
func (o *dryOptions) findLargest(ctx context.Context, std stdio, s *script) (*dry.Largest, *dry.Recording, error) {
	name, v, err := dry.ParseVariation(o.max, o.vary, s.args)
	if err != nil {
		return nil, nil, fmt.Errorf("--max %s: %w", o.max, err)
	}
	found, r, err := dry.FindLargest(ctx, s, name, v, func(r *dry.Recording) (dry.Question, error) { return o.question(std, r) })
	if err != nil {
		return nil, nil, failed(ctx, err)
	}
	return found, r, nil
}

// maxWorld is more processes than any job has.
const maxWorld = 1_000_000

// script runs a user's script under the recorder.
type script struct {
	std     stdio
	python  []string // with its options
	args    []string // the script and its arguments
	options []string // of the recorder
	folder  string   // for the recorder, and for the ledger unless it is kept
	ledger  string
	kill    <-chan struct{}
	exit    *int // the script's status; nil if a signal ended it
}

// newScript takes the command apart and lays the recorder out.
func (o *dryOptions) newScript(std stdio) (*script, error) {
	s := &script{std: std, ledger: o.ledger}
	if err := s.split(o.script); err != nil {
		return nil, err
	}
	path, err := exec.LookPath(s.python[0])
	if err != nil {
		return nil, failure{fmt.Errorf("%s: there is no such program; name the Python that has torch, such as .venv/bin/python", s.python[0])}
	}
	s.python[0] = path
	if o.given("steps") {
		s.options = append(s.options, "--steps", fmt.Sprint(o.steps))
	}
	if o.world > 1 {
		s.options = append(s.options, "--world", fmt.Sprint(o.world))
	}
	if o.data != "real" {
		s.options = append(s.options, "--data", o.data)
	}
	if o.noSave {
		s.options = append(s.options, "--no-save")
	}
	if o.gpu != "" {
		card, err := cards.Parse(o.gpu)
		if err != nil {
			return nil, failure{fmt.Errorf("--gpu: %w", err)}
		}
		s.options = append(s.options, "--card", cardText(&card))
	}
	if s.folder, err = os.MkdirTemp("", "ashlar-dry-"); err != nil {
		return nil, failure{err}
	}
	if err := os.WriteFile(filepath.Join(s.folder, python.DryName), python.Dry, 0o600); err != nil {
		s.close()
		return nil, failure{err}
	}
	return s, nil
}

func (s *script) close() { os.RemoveAll(s.folder) }

// cardText is a card as the recorder takes it.
func cardText(c *cards.Card) string {
	text, _ := json.Marshal(map[string]any{"name": c.Title, "total_bytes": c.TotalBytes, "capability": []int{c.Major, c.Minor}})
	return string(text)
}

// split separates Python and its options from the script.
func (s *script) split(command []string) error {
	if strings.HasSuffix(command[0], ".py") {
		command = append([]string{"python3"}, command...)
	}
	s.python = []string{command[0]}
	switch base := filepath.Base(command[0]); {
	case base == "torchrun" || base == "accelerate" || base == "deepspeed":
		return fmt.Errorf("%s starts several processes, and a dry run is of one: write --world N -- python and the script", base)
	case !strings.Contains(base, "py"):
		return fmt.Errorf("%s is no Python: write the command as -- python train.py", base)
	}
	rest := command[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		switch {
		case rest[0] == "-c":
			return errors.New("python -c has no script that could be run dry: put the program into a file")
		case rest[0] == "-m":
			s.args = rest
			if len(rest) < 2 {
				return errors.New("python -m needs the name of a module")
			}
			return nil
		case (rest[0] == "-X" || rest[0] == "-W") && len(rest) > 1:
			s.python, rest = append(s.python, rest[:2]...), rest[2:]
		default:
			s.python, rest = append(s.python, rest[0]), rest[1:]
		}
	}
	if s.args = rest; len(rest) == 0 {
		return errors.New("there is no script after python: write -- python train.py")
	}
	return nil
}

// grace is how long a script may take to end by itself after Ctrl-C, which the
// terminal sends it too.
const grace = 2 * time.Second

// Record runs the script, with further arguments and variables of the
// environment, and reads its ledger.
func (s *script) Record(ctx context.Context, v *dry.Variation) (*dry.Recording, error) {
	args, environ := v.Apply(s.args, os.Environ())
	all := append([]string{}, s.python[1:]...)
	made := filepath.Join(s.folder, "run.dry")
	if s.ledger == "" || strings.HasSuffix(s.ledger, ".gz") {
		made += ".gz"
	}
	all = append(all, filepath.Join(s.folder, python.DryName), "--out", made)
	all = append(append(all, s.options...), args...)
	os.Remove(made) // that of an earlier run must not be taken for this one's
	cmd := exec.Command(s.python[0], all...)
	cmd.Env = environ
	// The answer alone is on the standard output.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, s.std.err, s.std.err
	if err := cmd.Start(); err != nil {
		return nil, failure{fmt.Errorf("%s: cannot be started: %w", s.python[0], err)}
	}
	err := s.wait(ctx, cmd)
	s.exit = nil
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		s.exit = &code
	}
	r, problem := s.read(ctx, made)
	if problem == nil {
		return r, s.keep(made)
	}
	if s.exit != nil && *s.exit != 0 && s.lacksTorch() {
		return nil, failure{fmt.Errorf("%s has no torch: name the Python that has it, such as .venv/bin/python", s.python[0])}
	}
	if err != nil {
		return nil, failure{fmt.Errorf("the script ended (%w) before a dry run was written: see its output above", err)}
	}
	return nil, failure{problem}
}

// wait waits for the script. When ashlar is asked to end, the script may write its
// ledger; when it is asked again, the script is killed.
func (s *script) wait(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-s.kill:
		_ = cmd.Process.Kill()
		return <-done
	case <-time.After(grace):
		_ = cmd.Process.Signal(syscall.SIGINT)
	}
	select {
	case err := <-done:
		return err
	case <-s.kill:
		_ = cmd.Process.Kill()
	}
	return <-done
}

// read reads the ledger that the script has left.
func (s *script) read(ctx context.Context, made string) (*dry.Recording, error) {
	f, err := os.Open(made)
	if err != nil {
		return nil, errors.New("the script ended before a dry run was written: see its output above")
	}
	defer f.Close()
	r, err := dry.Read(context.WithoutCancel(ctx), f)
	if err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	return r, nil
}

// keep writes the ledger to where --ledger wants it, once there is one.
func (s *script) keep(made string) error {
	if s.ledger == "" {
		return nil
	}
	f, err := os.Open(made)
	if err != nil {
		return failure{err}
	}
	defer f.Close()
	out, err := atomicfile.Create(s.ledger)
	if err != nil {
		return failure{fmt.Errorf("--ledger: %w", err)}
	}
	if _, err = io.Copy(out, f); err == nil {
		err = out.Commit()
	}
	if err != nil {
		out.Abort()
		return failure{fmt.Errorf("--ledger: %w", err)}
	}
	return nil
}

// lacksTorch reports whether the script's Python cannot import torch.
func (s *script) lacksTorch() bool {
	return exec.Command(s.python[0], "-c", "import torch").Run() != nil
}
