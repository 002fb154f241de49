package variant

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// holder holds 100 MiB and, with an argument, ends when most of what was written was written since then.
const holder = `
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int lines(void) {
  char file[4096];
  snprintf(file, sizeof file, "%s/%d", getenv("ASHLAR_MALLOC_INSIDE"), (int)getpid());
  int from = open(file, O_RDONLY), n = 0;
  for (char c; from >= 0 && read(from, &c, 1) == 1;) n += c == '\n';
  if (from >= 0) close(from);
  return n;
}
int main(int argc, char **argv) {
  for (int i = 0; i < 100; i++) memset(malloc(1 << 20), 1, 1 << 20);
  for (int i = 0; i < 50; i++) free(malloc(1 << 20));
  if (argc < 2) return usleep(700000);
  for (int before = lines() + 1; lines() < 2 * before + 1;) usleep(10000);
  return 0;
}`

// Each malloc that tells says that 100 MiB are in use.
func TestInside(t *testing.T) {
	if runtime.GOOS != "linux" || Compiler() == "" {
		t.Skip("this needs Linux and a C compiler")
	}
	scratch := t.TempDir()
	library, err := BuildInside(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	program, err := Build(t.Context(), scratch, "holder", holder, "-fno-builtin")
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := Choose("jemalloc,tcmalloc,mimalloc")
	if err != nil {
		t.Fatal(err)
	}
	ready, _ := Search(t.Context(), chosen, scratch)
	for _, v := range ready {
		folder := t.TempDir()
		environ, _ := v.Environ([]string{"PATH=" + os.Getenv("PATH")})
		tells := v.Allocator != "mimalloc"
		cmd := exec.CommandContext(t.Context(), program)
		if tells {
			cmd.Args = append(cmd.Args, "wait")
		}
		cmd.Env = WithInside(environ, library, folder)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", v.Name, err, out)
		}
		got, ok := ReadInside(folder)
		if ok != tells {
			t.Errorf("%s: told %v", v.Name, ok)
		} else if ok && (got.InUse < 100<<20 || got.InUse > 110<<20 || got.Held < got.InUse) {
			t.Errorf("%s: %+v", v.Name, got)
		}
	}
}

// The sum is over the processes that were there in the last second.
func TestReadInside(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"1": "1000 5 50\n4000 10 100\n4200 30 300\n4400 20 200\n46",
		"2": "4300 1 2\n",
		"3": "100 7 7\n", // it ended long before
		"4": "",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := ReadInside(folder); !ok || got != (Inside{21, 202}) {
		t.Errorf("%+v, %v", got, ok)
	}
	if _, ok := ReadInside(t.TempDir()); ok {
		t.Error("of nothing")
	}
}
