package dry

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// hole is what stands for a value in an argument.
const hole = "{}"

// Variation is a value that a script is given.
type Variation struct {
	Args    []string // templates that are added to the script's arguments
	Environ []string // and to its environment, NAME={}
	Value   int64
}

// ParseVariation reads how a value is given to a script: of is NAME, with
// =ARGUMENT or =VARIABLE behind it or a template beside it, or with {} among the
// script's own arguments. It returns the name.
func ParseVariation(of, template string, args []string) (name string, v Variation, err error) {
	name, target, given := strings.Cut(of, "=")
	if name == "" {
		return "", v, errors.New("name what is varied, such as batch=--batch-size")
	}
	inside := slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, hole) })
	switch {
	case given && template != "":
		return "", v, errors.New("=ARGUMENT and a template say the same: leave one of them out")
	case given && strings.HasPrefix(target, "-"):
		template = target + " " + hole
	case given && target != "":
		template = target + "=" + hole
	case given:
		return "", v, errors.New("there is no argument after =: write one such as batch=--batch-size")
	}
	switch {
	case template == "" && inside:
		return name, v, nil
	case template == "":
		return "", v, errors.New("say how the script is given its value: batch=--batch-size, batch=VARIABLE, or {} among its arguments")
	case inside:
		return "", v, errors.New("the script's arguments have {} already: leave the template out")
	case !strings.Contains(template, hole):
		return "", v, fmt.Errorf("%q has no {}, which stands for the value: write it such as '--batch-size {}'", template)
	}
	words := strings.Fields(template)
	if variable, _, ok := strings.Cut(words[0], "="); ok && len(words) == 1 && !strings.HasPrefix(variable, "-") {
		v.Environ = words
	} else {
		v.Args = words
	}
	return name, v, nil
}

// With is the same variation with a value.
func (v Variation) With(value int64) *Variation {
	v.Value = value
	return &v
}

// Apply gives a script its value. Without a variation nothing changes.
func (v *Variation) Apply(args, environ []string) (newArgs, newEnviron []string) {
	if v == nil {
		return args, environ
	}
	fill := func(all []string) []string {
		out := make([]string, len(all))
		for i, a := range all {
			out[i] = strings.ReplaceAll(a, hole, strconv.FormatInt(v.Value, 10))
		}
		return out
	}
	return append(fill(args), fill(v.Args)...), append(slices.Clone(environ), fill(v.Environ)...)
}
