package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/anonymous"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// anonymousFlags are the flags of commands that can leave names out.
type anonymousFlags struct {
	on    bool
	salt  string
	given func() bool // whether there is a salt, which may be empty
}

// minSalt is the shortest salt that nobody guesses.
const minSalt = 16

func addAnonymousFlags(cmd *cobra.Command, a *anonymousFlags) {
	cmd.Flags().BoolVar(&a.on, "anonymous", false, "leave out names: files, functions, annotations, metadata, notes")
	cmd.Flags().StringVar(&a.salt, "salt", "", "with --anonymous: `TEXT` under which the same names become the same words in several files, such as those of ranks (default random)")
	a.given = func() bool { return cmd.Flags().Changed("salt") }
}

// check looks at the flags.
func (a *anonymousFlags) check() error {
	switch {
	case a.given() && !a.on:
		return fmt.Errorf("--salt is for --anonymous: give it too")
	case a.given() && len(a.salt) < minSalt:
		return fmt.Errorf("--salt has %d letters: give at least %d, or names can be found by trying salts", len(a.salt), minSalt)
	}
	return nil
}

// hide returns a snapshot without names, and what the words in it stand for.
func (a *anonymousFlags) hide(std stdio, f *snapshot.File) (*snapshot.File, []anonymous.Name) {
	if f.Truncated != nil {
		std.errorf("%s ends early; what is written looks complete, so answers about it may differ", f.Name)
	}
	salt := []byte(a.salt)
	if len(salt) == 0 {
		salt = make([]byte, 32)
		rand.Read(salt) // never fails
	}
	return anonymous.File(f, salt)
}

// read reads FILE for a command that shows it. Without names it is what a file
// without names would give: written and read again, so that nothing else is left.
// data is the file written, nil with names.
func (a *anonymousFlags) read(ctx context.Context, std stdio, file string) (in *input.Input, data []byte, err error) {
	if !a.on {
		in, err = readInput(ctx, std, file)
		return in, nil, err
	}
	f, err := readSnapshot(ctx, std, file)
	if err != nil {
		return nil, nil, err
	}
	hidden, _ := a.hide(std, f)
	var b bytes.Buffer
	if err := snapshot.WritePickle(&b, hidden); err != nil {
		return nil, nil, failed(ctx, err)
	}
	in, err = input.Read(ctx, "anonymous.pickle", bytes.NewReader(b.Bytes()), input.Options{Warn: func(text string) { std.errorf("%s", text) }})
	if err != nil {
		return nil, nil, failed(ctx, err)
	}
	return in, b.Bytes(), nil
}

// writeNames writes what words stand for.
func writeNames(w io.Writer, names []anonymous.Name) error {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s\t%q\n", n.Word, n.Was)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
