package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/view"
)

// tokenVariable has the token of the page's address, unless a file has it.
const tokenVariable = "ASHLAR_VIEW_TOKEN"

// maxTokenFile is more than any token has.
const maxTokenFile = 4096

// token returns the token that the user chose; empty if none.
func (o *viewOptions) token() (string, error) {
	from, token := tokenVariable, os.Getenv(tokenVariable)
	if o.tokenFile != "" {
		var err error
		if token, err = readToken(o.tokenFile); err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		from = o.tokenFile
	} else if token == "" {
		return "", nil
	}
	if err := view.CheckToken(token); err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	return token, nil
}

// readToken reads a token from a file that nobody else can read.
func readToken(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s: no such file; check the name", name)
		}
		return "", fmt.Errorf("%s cannot be read: check that the file is yours", name)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if mode := info.Mode(); runtime.GOOS != "windows" && mode.Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s can be read or written by others (%v): run chmod 600 %[1]s", name, mode.Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	return strings.TrimSpace(string(text)), err
}

// tunnel returns the command that brings the page to the user's own machine;
// empty if the page can be opened on this one.
func tunnel(port int, env func(string) string) string {
	remote := strings.Fields(env("SSH_CONNECTION")) // client, its port, this machine, its port
	screen := runtime.GOOS != "linux" || env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != ""
	if screen && len(remote) == 0 {
		return ""
	}
	host, _ := os.Hostname()
	options := ""
	if len(remote) == 4 {
		host = remote[2]
		if remote[3] != "22" {
			options = "-p " + remote[3] + " "
		}
	}
	if host == "" {
		host = "HOST"
	}
	if user := env("USER"); user != "" {
		host = user + "@" + host
	}
	return fmt.Sprintf("ssh %s-L %d:127.0.0.1:%[2]d %s", options, port, host)
}
