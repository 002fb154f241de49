//go:build unix

package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What never ends is not read, whoever names it.
func TestEndless(t *testing.T) {
	const url, zero = "nats://127.0.0.1:1", "/dev/zero"
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, make([]byte, maxSecret<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	if err := os.Symlink(zero, knownPath(store)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		options Options
		want    string
	}{
		{Options{URL: url, Creds: zero}, "the credentials: /dev/zero is not a regular file"},
		{Options{URL: url, CA: zero}, "the certificate: /dev/zero is not a regular file"},
		{Options{URL: url, Creds: long}, long + ": more than 1 MiB: this is no credentials file"},
		{Options{URL: url, CA: long}, long + ": more than 1 MiB: this is no certificate file"},
		{Options{Dir: store}, knownPath(store) + " is not a regular file"},
	} {
		if _, err := Open(t.Context(), tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.options, err, tt.want)
		}
	}
	if _, err := KeyPair(long, long); err == nil || !strings.Contains(err.Error(), "more than 1 MiB: this is no certificate") {
		t.Errorf("a long certificate: %v", err)
	}
}
