package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/version"
)

const sample = "testdata/snapshots/gpt2_fixed-tight-default.pickle.gz"

// What the command is to stay below. They are printed, not enforced: the first
// depends on the machine, the second is a goal.
const (
	startGoal = 30 * time.Millisecond
	sizeGoal  = 30e6 // bytes
)

// checkAll installs and uses what makeAll made.
func checkAll(out string, host bool) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "ashlar-dist-test")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := checkWheels(out); err != nil {
		return err
	}
	if err := checkInstalled(out, filepath.Join(work, "venv")); err != nil {
		return err
	}
	if host {
		return nil
	}
	for _, check := range []func(out, work string) error{checkSums, checkArchives, checkDebian, checkImage, checkReproducible} {
		if err := check(out, work); err != nil {
			return err
		}
	}
	fmt.Println("all that can be installed was")
	return nil
}

// checkInstalled installs the wheel into a virtual environment and uses it with
// nothing on PATH but that environment and the system's own folders.
func checkInstalled(out, venv string) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		fmt.Println("the wheel was not installed: there is no python3")
		return nil
	}
	if text, err := exec.Command(python, "-m", "venv", venv).CombinedOutput(); err != nil {
		fmt.Printf("the wheel was not installed: python3 has no venv (%s)\n", bytes.TrimSpace(text))
		return nil
	}
	bin := filepath.Join(venv, "bin")
	in := shell{env: []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + venv, "PYTHONDONTWRITEBYTECODE=1"}, dir: venv}
	wheels, err := filepath.Glob(filepath.Join(out, "*.whl"))
	if err != nil {
		return err
	}
	if len(wheels) == 0 {
		return fmt.Errorf("%s has no wheels: run make dist", out)
	}
	// pip chooses by the tags among all wheels, as it would from an index.
	if _, err := in.run(filepath.Join(bin, "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-compile", "--pre", "--find-links", out, "ashlar-mem"); err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	job := filepath.Join(venv, "job.py")
	if err := os.WriteFile(job, []byte("import ashlar_mem, sys\nprint('job', sys.argv[1:], ashlar_mem.__version__)\n"), 0o644); err != nil {
		return err
	}
	ashlar, py := filepath.Join(bin, "ashlar"), filepath.Join(bin, "python")
	for _, x := range []struct {
		want string
		argv []string
	}{
		{version.Text, []string{ashlar, "version", "--json"}},
		{"fragmentation", []string{ashlar, "explain", "--limit", "7609MiB", filepath.Join(root, sample)}},
		{"<html", []string{ashlar, "report", "--interactive", filepath.Join(root, sample), "-o", "-"}},
		{"job ['--batch', '8'] " + pythonVersion(), []string{py, "-m", "ashlar_mem", job, "--batch", "8"}},
		{"usage: python -m ashlar_mem", []string{py, "-m", "ashlar_mem", "--help"}},
		{"ok", []string{py, "-c", "import ashlar_mem, ctypes, os; p = os.path.join(os.path.dirname(ashlar_mem.__file__), 'libashlar.so'); os.path.exists(p) and ctypes.CDLL(p); print('ok')"}},
	} {
		text, err := in.run(x.argv[0], x.argv[1:]...)
		if err != nil {
			return err
		}
		if !strings.Contains(text, x.want) {
			return fmt.Errorf("%s: no %q in what it says:\n%.2000s", strings.Join(x.argv, " "), x.want, text)
		}
	}
	if err := checkWithoutTorch(in, py, job); err != nil {
		return err
	}
	if err := measure(in, ashlar); err != nil {
		return err
	}
	if _, err := in.run(filepath.Join(bin, "pip"), "uninstall", "--quiet", "--disable-pip-version-check", "--yes", "ashlar-mem"); err != nil {
		return err
	}
	if _, err := os.Stat(ashlar); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("pip uninstall left %s", ashlar)
	}
	fmt.Println("wheel: installed, used and removed without Go")
	return nil
}

// checkWithoutTorch runs what is to say that PyTorch is missing.
func checkWithoutTorch(in shell, py, job string) error {
	if _, err := in.run(py, "-c", "import torch"); err == nil {
		return nil
	}
	text, err := in.run(py, "-m", "ashlar_mem", job)
	if err != nil {
		return err
	}
	if !strings.Contains(text, "there is no PyTorch for") {
		return fmt.Errorf("python -m ashlar_mem without PyTorch does not say so:\n%s", text)
	}
	return nil
}

// measure prints how large the command is and how long it takes to start.
func measure(in shell, ashlar string) error {
	info, err := os.Stat(ashlar)
	if err != nil {
		return err
	}
	var times []time.Duration
	for range 15 {
		begin := time.Now()
		if _, err := in.run(ashlar, "version"); err != nil {
			return err
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	median := times[len(times)/2]
	fmt.Printf("size:  %.1f MB stripped (%s 30 MB)\n", float64(info.Size())/1e6, comparison(float64(info.Size()) < sizeGoal))
	fmt.Printf("start: %.1f ms, the median of %d (%s 30 ms); the fastest %.1f ms\n", median.Seconds()*1e3, len(times), comparison(median < startGoal), times[0].Seconds()*1e3)
	return nil
}

func comparison(below bool) string {
	if below {
		return "below the goal of"
	}
	return "ABOVE the goal of"
}

// A shell runs commands with an environment of its own.
type shell struct {
	env []string
	dir string
}

// run returns both outputs; an error has them too.
func (s shell) run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%.4000s", name, strings.Join(args, " "), err, text)
	}
	return string(text), nil
}
