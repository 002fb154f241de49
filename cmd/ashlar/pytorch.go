package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// versionText matches a version as PyTorch writes its own, torch.__version__.
var versionText = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+)?((a|b|rc|\.dev)[0-9]+)?(\+\S+)?$`)

// versionFlag is --pytorch: the release that wrote a file.
type versionFlag struct{ version pytorch.Version }

func addVersionFlag(cmd *cobra.Command, v *versionFlag) {
	cmd.Flags().Var(v, "pytorch", "the version of PyTorch that wrote the file, such as 2.7, whose rules are replayed; by default as the file shows")
}

func (v *versionFlag) Set(s string) error {
	parsed, err := pytorch.Parse(s)
	switch {
	case err != nil:
		return err
	case !versionText.MatchString(s):
		return errors.New("no version: write it as 2.7 or 2.7.1+cu126")
	case parsed < pytorch.Oldest || parsed > pytorch.Newest:
		return fmt.Errorf("the rules of PyTorch %v to %v are known: give one of them", pytorch.Oldest, pytorch.Newest)
	}
	v.version = parsed
	return nil
}

// apply sets the version of a snapshot, if the flag is given. f may be nil.
func (v *versionFlag) apply(f *snapshot.File) {
	if f != nil && v.version != 0 {
		f.SetWriter(v.version)
	}
}

func (v *versionFlag) Type() string { return "VERSION" }

func (v *versionFlag) String() string {
	if v.version == 0 {
		return ""
	}
	return v.version.String()
}
