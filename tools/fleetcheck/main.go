package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/internal/test/planted"
)

var (
	ashlar   = flag.String("ashlar", "../bin/ashlar", "the command")
	testdata = flag.String("testdata", "../testdata", "recordings that files are made from")
	params   = flag.String("fleet", "{}", "parameters that differ from the usual ones, as JSON: {\"Seed\": 2}")
	keep     = flag.String("o", "", "keep the files, and truth.json, in this folder")
)

func main() {
	flag.Parse()
	wrong, err := check()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleetcheck:", err)
		os.Exit(2)
	}
	for _, w := range wrong {
		fmt.Println(w)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
	fmt.Println("every planted commit, rank and cause was found, and no other")
}

func check() ([]string, error) {
	p := planted.Usual()
	if err := json.Unmarshal([]byte(*params), &p); err != nil {
		return nil, fmt.Errorf("-fleet: %w", err)
	}
	work, err := os.MkdirTemp("", "fleetcheck")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	files, store := filepath.Join(work, "files"), filepath.Join(work, "store")
	if *keep != "" {
		files = *keep
	}
	begin := time.Now()
	truth, err := planted.Write(context.Background(), *testdata, files, p)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(truth)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(files), "truth.json"), text, 0o644); err != nil {
		return nil, err
	}
	fmt.Printf("%d files with %d commits that grew, %d odd ranks, %d causes (%.0f s)\n",
		len(truth.Files), len(truth.Grown), len(truth.Odd), len(truth.Causes), time.Since(begin).Seconds())
	f := &fleet{store}
	add := []string{"add"}
	for _, of := range truth.Files {
		add = append(add, filepath.Join(files, filepath.FromSlash(of.Path)))
	}
	if _, err := f.run(add...); err != nil {
		return nil, err
	}
	var first []byte
	for i := range 2 {
		begin := time.Now()
		given, raw, err := f.ask(truth)
		if err != nil {
			return nil, err
		}
		fmt.Printf("analysed and asked (%.0f s)\n", time.Since(begin).Seconds())
		if i == 0 {
			first = raw
			if wrong := truth.Check(given); len(wrong) > 0 {
				return wrong, nil
			}
		} else if !bytes.Equal(first, raw) {
			return []string{"the answers are not the same the second time"}, nil
		}
	}
	return nil, nil
}

// fleet is a store of the command.
type fleet struct{ dir string }

func (f *fleet) run(args ...string) ([]byte, error) {
	cmd := exec.Command(*ashlar, append([]string{"fleet"}, append(args, "--dir", f.dir)...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w", cmd.Args, err)
	}
	return out, err
}

// serve starts a server, and waits until others can reach it.
func (f *fleet) serve() (stop func(), err error) {
	serve := exec.Command(*ashlar, "fleet", "serve", "--dir", f.dir)
	var said bytes.Buffer
	serve.Stderr = &said
	if err := serve.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- serve.Wait() }()
	stop = func() {
		_ = serve.Process.Signal(os.Interrupt)
		<-ended
	}
	for range 300 {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the server ended: %w: %s", err, said.Bytes())
		case <-time.After(100 * time.Millisecond):
		}
		if c, err := net.Dial("unix", filepath.Join(f.dir, "hub.sock")); err == nil {
			c.Close()
			return stop, nil
		}
	}
	stop()
	return nil, errors.New("the server did not start within half a minute")
}

// ask waits until everything is analysed, and asks all questions.
func (f *fleet) ask(truth *planted.Truth) (*planted.Answers, []byte, error) {
	stop, err := f.serve()
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	if err := f.wait(len(truth.Files)); err != nil {
		return nil, nil, err
	}
	var raw []byte
	ask := func(document any, args ...string) error {
		out, err := f.run(append(args, "--json")...)
		if err != nil {
			return err
		}
		raw = append(raw, out...)
		return json.Unmarshal(out, document)
	}
	var a planted.Answers
	if err := ask(&a.Growth, "growth"); err != nil {
		return nil, nil, err
	}
	if err := ask(&a.Causes, "causes"); err != nil {
		return nil, nil, err
	}
	for _, run := range truth.Runs() {
		a.Ranks = append(a.Ranks, nil)
		if err := ask(&a.Ranks[len(a.Ranks)-1], "ranks", run); err != nil {
			return nil, nil, err
		}
	}
	return &a, raw, nil
}

// wait waits until all files are analysed.
func (f *fleet) wait(files int) error {
	var s struct {
		Analysed, Failed int
	}
	for deadline := time.Now().Add(30 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		out, err := f.run("status", "--json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal(out, &s); err != nil {
			return err
		}
		if s.Analysed+s.Failed >= files {
			if s.Failed > 0 {
				return fmt.Errorf("%d files could not be analysed", s.Failed)
			}
			return nil
		}
	}
	return fmt.Errorf("after half an hour %d of %d files are analysed", s.Analysed, files)
}
