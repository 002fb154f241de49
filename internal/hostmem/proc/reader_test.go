//go:build linux

package proc

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestInside(t *testing.T) {
	for _, test := range []struct{ root, name, want string }{
		{"", "/lib/x.so", "/lib/x.so"},
		{"/srv/root", "/srv/root/lib/x.so", "/lib/x.so"},
		{"/srv/root", "/srv/rootless/x.so", "/srv/rootless/x.so"},
		{"/srv/root", "/lib/x.so", "/lib/x.so"},
	} {
		if got := Inside(test.root, test.name); got != test.want {
			t.Errorf("%s in %q: %s", test.name, test.root, got)
		}
	}
	if Root(os.Getpid()) != "" {
		t.Errorf("our own root is %s", Root(os.Getpid()))
	}
	dir, err := os.Getwd()
	if got, other := Directory(os.Getpid()); err != nil || other != nil || got != dir {
		t.Errorf("%s, %v; want %s", got, other, dir)
	}
}

// The mark of a program changes when the same file is begun anew.
func TestProgram(t *testing.T) {
	cmd := exec.Command("sh", "-c", `echo one; read x; exec sh -c "echo two; read x"`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	lines := bufio.NewReader(out)
	var marks [3]string
	for i, word := range []string{"one\n", "", "two\n"} {
		if word != "" {
			if got, err := lines.ReadString('\n'); err != nil || got != word {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if marks[i], err = Program(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			in.Write([]byte("\n"))
		}
	}
	if marks[0] != marks[1] {
		t.Errorf("%s, then %s", marks[0], marks[1])
	}
	if moved, err := os.ReadFile("/proc/sys/kernel/randomize_va_space"); err == nil && moved[0] != '0' && marks[1] == marks[2] {
		t.Errorf("it is %s before and after", marks[1])
	}
}

func TestReadCredentials(t *testing.T) {
	c, err := ReadCredentials(os.Getpid())
	if err != nil || c.UID != os.Geteuid() || c.RealUID != os.Getuid() || c.Closed {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := ReadCredentials(1 << 30); err == nil {
		t.Error("there is no such process")
	}
}

func TestLivingThread(t *testing.T) {
	if got := LivingThread(os.Getpid()); got != os.Getpid() {
		t.Errorf("%d", got)
	}
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	for end := time.Now().Add(5 * time.Second); LivingThread(cmd.Process.Pid) != 0; {
		if time.Now().After(end) {
			t.Fatal("it does not end")
		}
	}
}
