package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/spelling"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// sizeFlag is a size, or not given.
type sizeFlag struct {
	text  string
	value *uint64
}

func (f *sizeFlag) Set(s string) error {
	n, err := units.ParseMemory(s)
	if err != nil {
		return err
	}
	*f = sizeFlag{s, &n}
	return nil
}

func (f *sizeFlag) Type() string   { return "SIZE" }
func (f *sizeFlag) String() string { return f.text }

// defaultSize returns a flag that has a value if none is given.
func defaultSize(text string) sizeFlag {
	var f sizeFlag
	if err := f.Set(text); err != nil {
		panic(err) // it is written in this program
	}
	return f
}

// perStepFlag is a size for each step, or not given: 1MiB or 1MiB/step.
type perStepFlag struct{ sizeFlag }

func (f *perStepFlag) Set(s string) error { return f.sizeFlag.Set(strings.TrimSuffix(s, "/step")) }

// countFlag is a number of times, or not given.
type countFlag struct {
	text  string
	value *int64
}

func (f *countFlag) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return errors.New("write a whole number that is not negative")
	}
	*f = countFlag{s, &n}
	return nil
}

func (f *countFlag) Type() string   { return "N" }
func (f *countFlag) String() string { return f.text }

// percentFlag is a number of percent, or not given.
type percentFlag struct {
	text  string
	value *float64
}

func (f *percentFlag) Set(s string) error {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "%")), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return errors.New("write a number of percent that is not negative, such as 15 or 2.5%")
	}
	*f = percentFlag{s, &v}
	return nil
}

func (f *percentFlag) Type() string   { return "PCT" }
func (f *percentFlag) String() string { return f.text }

// confFlag is a text of settings, or not given.
type confFlag struct{ value *string }

func (f *confFlag) Set(s string) error {
	f.value = &s
	return nil
}

func (f *confFlag) Type() string { return "CONF" }

func (f *confFlag) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

// boundFlag is a size, or none.
type boundFlag struct {
	text  string
	bytes *uint64 // nil if it was not given, 0 for none
}

func (b *boundFlag) Set(s string) error {
	n, err := whatif.ParseBound(s)
	if err != nil {
		return err
	}
	*b = boundFlag{s, &n}
	return nil
}

func (b *boundFlag) Type() string { return "SIZE" }

func (b *boundFlag) String() string { return b.text }

// wordFlag is one of some words, or not given.
type wordFlag struct {
	value string
	words []string
}

func (f *wordFlag) Set(s string) error {
	if !slices.Contains(f.words, s) {
		return errors.New("write " + oneOf(f.words) + spelling.DidYouMean(s, f.words))
	}
	f.value = s
	return nil
}

func (f *wordFlag) Type() string       { return "WORD" }
func (f *wordFlag) String() string     { return f.value }
func (f *wordFlag) complete() []string { return f.words }

// oneOf lists words for a choice.
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// kindWords say what is to be written for flags of Go's own kinds, whose errors are
// for programmers.
var kindWords = map[string]string{
	"int": "write a whole number", "int64": "write a whole number", "uint": "write a whole number that is not negative",
	"uint64": "write a whole number that is not negative", "float64": "write a number",
	"duration": "write a time such as 30s, 5m or 1h30m", "bool": "write true or false",
}

// flagError words an error about the flags: which one, what is wrong with it,
// and what was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return fmt.Errorf("unknown flag: --%s%s", unknown.GetSpecifiedName(), spelling.DidYouMean("--"+unknown.GetSpecifiedName(), names))
	case errors.As(err, &invalid):
		value := strconv.Quote(invalid.GetValue())
		cause := strings.TrimPrefix(errors.Unwrap(invalid).Error(), value+": ") // some repeat it
		if words, ok := kindWords[invalid.GetFlag().Value.Type()]; ok {
			cause = words
		}
		return fmt.Errorf("--%s %s: %s", invalid.GetFlag().Name, value, cause)
	}
	return err
}

// noCommand is how a command ends that only has subcommands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no command given")
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	path := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()) + " " + args[0])
	return fmt.Errorf("unknown command %q%s", path, spelling.DidYouMean(args[0], names))
}
