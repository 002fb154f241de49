package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/fleet"
)

func fleetCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = execute(t.Context(), stdio{out: &out, err: &err}, append([]string{"fleet"}, args...))
	return code, out.String(), err.String()
}

// What is wrong is said in one line, and nothing is half done.
func TestFleetWrong(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no snapshot"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store")
	if code, _, stderr := fleetCommand(t, "add", "--dir", store, "../../testdata/variety/ring.pickle.gz"); code != exitOK {
		t.Fatal(stderr)
	}
	for _, x := range []struct{ args, want string }{
		{"query --where nope>1 --dir " + store, `there is no column "nope"`},
		{"query --show peak_reserved_byte --dir " + store, "did you mean peak_reserved_bytes"},
		{"query -o table.csv --dir " + store, ".parquet"},
		{"status --hub nats://127.0.0.1:1", "cannot be opened"},
		{"status --hub nats://127.0.0.1:1 --creds " + file + "x", "credentials"},
		{"status --hub nats://127.0.0.1:1 --dir " + store, "leave --dir out"},
		{"status --token-file " + file, "--hub"},
		{"add --dir " + file + " " + file, "folder"},
		{"status --dir " + store + "x", "there is no fleet in"},
		{"check --dir " + dir, "there is no fleet in"},
		{"query --limit x --dir " + store, "whole number"},
		{"add", "needs a FILE"},
		{"add --tag x " + file + " --dir " + store, "KEY=VALUE"},
		{"add " + filepath.Join(dir, "*.none") + " --dir " + store, "no file matches"},
		{"ranks none --dir " + store, "none"},
		{"rm 123456 --dir " + store, "no file has a hash"},
		{"rm 0 --dir " + store, "too short for a hash"},
		{"serve --listen 0.0.0.0:0 --dir " + store, "other machines"},
		{"serve --cert " + file + " --dir " + store, "--listen"},
		{"work -j 0 --dir " + store, "-j 0"},
		{"tune none --dir " + store, "none is no file here, and no file or run of the fleet"},
		{"tune 0 --dir " + store, "no file or run"},
		{"tune none --dir " + store + "x", "there is no fleet in"},
		{"work --dir " + store + "x", "there is no fleet in"},
		{"serve --max-disk 0 --dir " + store, "would remove every file"},
		{"status --hub nats://127.0.0.1:1 --token-file " + file + "x", "no such file; check the name"},
		{"statu", "did you mean status"},
	} {
		code, _, stderr := fleetCommand(t, strings.Fields(x.args)...)
		if code != exitInput || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, x.want) {
			t.Errorf("%s: status %d, %q", x.args, code, stderr)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("what was wrong left something behind: %v, %v", left, err)
	}
}

// A file is added once; one that is none is refused.
func TestFleetAdd(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"add", "--json", "--dir", filepath.Join(dir, "store"), "--run", "r", "../../testdata/variety/ring.pickle.gz"}
	for i, want := range []fleet.Added{{Added: 1}, {Known: 1}, {Known: 1, Refused: []fleet.Refused{{File: junk}}}} {
		wantCode := exitOK
		if i == 2 {
			args, wantCode = append(args, junk), exitInput
		}
		code, stdout, stderr := fleetCommand(t, args...)
		var got fleet.Added
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%v: %q, %q", err, stdout, stderr)
		}
		if refusals := strings.Count(stderr, "\n"); refusals != len(want.Refused) || refusals > 0 && !strings.HasPrefix(stderr, "ashlar: "+junk+": ") {
			t.Errorf("of %d refusals there is %q", len(want.Refused), stderr)
		}
		if code != wantCode || got.Added != want.Added || got.Known != want.Known || len(got.Refused) != len(want.Refused) {
			t.Errorf("status %d, %+v, want %+v", code, got, want)
		}
	}
	args = []string{"add", "--dir", filepath.Join(dir, "store"), os.DevNull, junk}
	code, stdout, stderr := fleetCommand(t, args...)
	if code != exitInput || stdout != "0 added, 0 known already, 2 refused, 0 skipped\n" || strings.Count(stderr, "\nashlar: "+junk) != 1 || !strings.HasPrefix(stderr, "ashlar: "+os.DevNull+" is no ordinary file") {
		t.Errorf("status %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, _ = fleetCommand(t, "check", "--dir", filepath.Join(dir, "store"))
	if code != exitBad || !strings.Contains(stdout, "0 wrong") || !strings.Contains(stdout, "waiting: 1 file ") {
		t.Errorf("a file without answers: status %d, %q", code, stdout)
	}
	if code, stdout, _ := fleetCommand(t, "rm", "--run", "r", "--dir", filepath.Join(dir, "store")); code != exitOK || stdout != "1 file removed\n" {
		t.Errorf("status %d, %q", code, stdout)
	}
	if code, stdout, _ := fleetCommand(t, "check", "--dir", filepath.Join(dir, "store")); code != exitOK {
		t.Errorf("after the removal: status %d, %q", code, stdout)
	}
}

// A store that is damaged is said to be, by whichever command comes first.
func TestDamagedStore(t *testing.T) {
	for _, args := range [][]string{{"fleet", "status"}, {"watch", "--once"}} {
		dir := t.TempDir()
		if code, _, stderr := fleetCommand(t, "add", "--dir", dir, "../../testdata/variety/ring.pickle.gz"); code != exitOK || stderr != "" {
			t.Fatal(stderr)
		}
		if err := os.RemoveAll(filepath.Join(dir, "jetstream")); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ashlar: the store in " + dir + " is damaged (", ""} { // once
			var stdout, stderr bytes.Buffer
			code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, append(args, "--dir", dir))
			if said := stderr.String(); code != exitOK || !strings.HasPrefix(said, want) || want == "" && said != "" || strings.Count(said, "\n") != min(len(want), 1) {
				t.Errorf("%q: status %d, %q", args, code, said)
			}
		}
	}
}

// Of a folder everything below it is taken, what is left out is named, and so is
// what a user says of files that are known in another way; a table says what waits.
func TestFleetAddFolder(t *testing.T) {
	dir := t.TempDir()
	from, store := filepath.Join(dir, "from"), filepath.Join(dir, "store")
	deep := filepath.Join(from, "a", "b")
	if err := os.MkdirAll(filepath.Join(from, ".hidden"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(from, "1.log"), filepath.Join(deep, "2.log"), filepath.Join(from, ".hidden", "3.log")} {
		text := path + "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 10.00 MiB is free.\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(deep, "train.py"), []byte("print(1)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(from, filepath.Join(deep, "round")); err != nil {
		t.Fatal(err)
	}
	add := func(args ...string) (a fleet.Added) {
		t.Helper()
		code, stdout, stderr := fleetCommand(t, append([]string{"add", "--json", "--dir", store, from}, args...)...)
		if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != exitOK {
			t.Fatalf("status %d, %v, %q", code, err, stderr)
		}
		return a
	}
	if a := add("--run", "r", "--tag", "k=v"); a.Added != 2 || len(a.Skipped) != 3 || a.Skipped[0].File != filepath.Join(deep, "train.py") || a.Skipped[1].File != filepath.Join(from, ".hidden") || !strings.Contains(a.Skipped[2].Error, "link") {
		t.Errorf("%+v", a)
	}
	if a := add("--run", "r", "--tag", "k=v"); a.Known != 2 || len(a.Notes) != 0 {
		t.Errorf("%+v", a)
	}
	for _, args := range [][]string{{"--run", "other"}, {"--commit", "1"}, {"--tag", "k=w"}} {
		if a := add(args...); a.Known != 2 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "2 files are known with another") {
			t.Errorf("%v: %+v", args, a)
		}
	}
	if code, stdout, _ := fleetCommand(t, "query", "--dir", store); code != exitOK || !strings.Contains(stdout, "note: 2 files wait") {
		t.Errorf("status %d, %q", code, stdout)
	}
	table := filepath.Join(dir, "table.parquet")
	code, stdout, stderr := fleetCommand(t, "query", "-o", table, "--json", "--dir", store)
	var written fleet.WrittenTable
	if err := json.Unmarshal([]byte(stdout), &written); err != nil || code != exitOK || written.File != table || written.Columns == 0 || len(written.Notes) != 1 || stderr != "" {
		t.Errorf("status %d, %v, %q, %q", code, err, stdout, stderr)
	}
	if code, _, stderr := fleetCommand(t, "query", "-o", table, "--dir", store); code != exitOK || !strings.HasPrefix(stderr, "ashlar: note: 2 files wait") {
		t.Errorf("status %d, %q", code, stderr)
	}
	nowhere := filepath.Join(dir, "nowhere", "table.parquet")
	if code, _, stderr := fleetCommand(t, "query", "-o", nowhere, "--dir", store); code != exitInput || stderr != "ashlar: "+nowhere+" cannot be written: no such file or directory\n" {
		t.Errorf("a table that cannot be written: status %d, %q", code, stderr)
	}
	if code, stdout, _ := fleetCommand(t, "query", "--json", "--dir", store); code != exitOK || !strings.Contains(stdout, "2 files wait") {
		t.Errorf("status %d, %q", code, stdout)
	}
	if code, stdout, _ := fleetCommand(t, "add", "--dir", store, filepath.Join(from, "none*"), t.TempDir(), from); code != exitInput || !strings.Contains(stdout, "0 added, 2 known already, 2 refused, 3 skipped") {
		t.Errorf("status %d, %q", code, stdout)
	}
	if code, stdout, _ := fleetCommand(t, "add", "--dir", store, filepath.Join(dir, "fr*")); code != exitOK || !strings.Contains(stdout, "2 known already") {
		t.Errorf("a pattern for a folder: status %d, %q", code, stdout)
	}
	for name, data := range map[string]string{"empty": "", "binary": "\x01\x02\xff\xfe\x00\x11", "table.jsonl": `{"error": "CUDA out of memory. Tried to allocate 2.00 GiB."}`} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if a := add(); a.Known != 2 || len(a.Skipped) != 6 || len(a.Refused) != 0 {
		t.Errorf("%+v", a)
	}
}
