package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ashlar": main})
}

// The recordings the scripts use, in their working directory.
var scriptFiles = []string{
	"oracle/lessons-default-1.json.gz",
	"oracle/lessons-expand-1.json.gz",
	"oracle/pressure-default-1.json.gz",
	"verify/recordings/pending-22-2.json.gz",
	"verify/pytorch-fails/capture-9-1.json.gz",
	"verify/pytorch-fails/pools-18-3.json.gz",
	"verify/pytorch-fails/r3-pools-10-2.json.gz",
}

// linkTestdata puts the recordings beside a script, under a name that is as long
// on every machine: where lines are broken depends on it.
func linkTestdata(env *testscript.Env) error {
	testdata, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		return err
	}
	env.Setenv("TESTDATA", "testdata")
	return os.Symlink(testdata, filepath.Join(env.WorkDir, "testdata"))
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files:               scripts(t),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			if err := linkTestdata(env); err != nil {
				return err
			}
			for _, f := range scriptFiles {
				data, err := os.ReadFile(filepath.Join("..", "..", "testdata", f))
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(env.WorkDir, filepath.Base(f)), data, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   cmdExits,
			"gunzip":  cmdGunzip,
			"tamper":  cmdTamper,
			"cut":     cmdCut,
			"makepng": cmdMakePNG,
			"devices": cmdDevices,
			"json":    cmdJSON,
			"weights": cmdWeights,
		},
	})
}

// scripts returns the scripts. Those that start the command very often, one
// question after the other, are left out under -short.
func scripts(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	if !testing.Short() {
		return all
	}
	long := []string{"plan-review.txtar", "plan-rough.txtar", "plan-words.txtar", "usage.txtar"}
	return slices.DeleteFunc(all, func(f string) bool { return slices.Contains(long, filepath.Base(f)) })
}

// cmdExits: exits STATUS COMMAND ARG... runs a command and checks its status.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// cmdWeights: weights FILE NAME=TYPE:SIZExSIZE... makes a safetensors file whose
// data are holes.
func cmdWeights(ts *testscript.TestScript, neg bool, args []string) {
	var all []safetensors.Tensor
	size := int64(0)
	for _, a := range args[1:] {
		name, rest, _ := strings.Cut(a, "=")
		dtype, dims, _ := strings.Cut(rest, ":")
		var shape []int64
		for d := range strings.SplitSeq(dims, "x") {
			n, err := strconv.ParseInt(d, 10, 64)
			ts.Check(err)
			shape = append(shape, n)
		}
		all = append(all, safetensors.New(name, dtype, shape...))
		size += int64(all[len(all)-1].Bytes)
	}
	header, _, err := safetensors.Layout(all)
	ts.Check(err)
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	ts.Check(os.WriteFile(path, header, 0o600))
	ts.Check(os.Truncate(path, int64(len(header))+size))
}

// cmdGunzip: gunzip FILE OUT.
func cmdGunzip(ts *testscript.TestScript, neg bool, args []string) {
	write(ts, args[1], unpacked(ts, args[0]))
}

// cmdTamper: tamper FILE OUT OLD NEW replaces the first OLD in the JSON.
func cmdTamper(ts *testscript.TestScript, neg bool, args []string) {
	data := unpacked(ts, args[0])
	if !bytes.Contains(data, []byte(args[2])) {
		ts.Fatalf("%s does not contain %q", args[0], args[2])
	}
	write(ts, args[1], bytes.Replace(data, []byte(args[2]), []byte(args[3]), 1))
}

// cmdCut: cut FILE OUT N keeps the first N bytes.
func cmdCut(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	write(ts, args[1], []byte(ts.ReadFile(args[0]))[:n])
}

// cmdMakePNG: makepng OUT.
func cmdMakePNG(ts *testscript.TestScript, neg bool, args []string) {
	write(ts, args[0], []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"))
}

func unpacked(ts *testscript.TestScript, file string) []byte {
	z, err := gzip.NewReader(bytes.NewReader([]byte(ts.ReadFile(file))))
	ts.Check(err)
	data, err := io.ReadAll(z)
	ts.Check(err)
	return data
}

func write(ts *testscript.TestScript, file string, data []byte) {
	ts.Check(os.WriteFile(ts.MkAbs(file), data, 0o600))
}
