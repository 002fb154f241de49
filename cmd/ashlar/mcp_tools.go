package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ashlar-mem/ashlar/internal/answer/check"
	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/dry"
	"github.com/ashlar-mem/ashlar/internal/mcp"
	"github.com/ashlar-mem/ashlar/internal/plan"
)

// agentTool is a command as a tool.
type agentTool struct {
	command   *cobra.Command
	files     string   // what the argument for the command's files is called
	several   bool     // it is a list
	needed    bool     // it must be given
	about     string   // what it is
	without   []string // flags that an agent does not have: what writes, runs a script, or draws
	documents []reflect.Type
}

// agentTools are the commands that an agent may ask.
func agentTools(root *mcp.Root) []mcp.Tool {
	const snapshot = "a memory snapshot of PyTorch"
	var none stdio
	var out []mcp.Tool
	for _, t := range []agentTool{
		{
			command: newExplain(none), files: "files", several: true,
			about:     snapshot + ", a dump of memory_stats(), or a log with an out-of-memory message; several, or a directory, are the ranks of a job",
			documents: []reflect.Type{reflect.TypeFor[explain.Document](), reflect.TypeFor[explain.RanksDocument]()},
		},
		{command: newWhatif(none), files: "file", needed: true, about: snapshot, without: []string{"curve"}, documents: []reflect.Type{reflect.TypeFor[whatif.Document]()}},
		{command: newTune(none), files: "file", needed: true, about: snapshot, documents: []reflect.Type{reflect.TypeFor[tune.Document]()}},
		{command: newCheck(none), files: "file", needed: true, about: snapshot + ", a dump of memory_stats() or a log", documents: []reflect.Type{reflect.TypeFor[check.Document]()}},
		{
			command: newDiff(none), files: "files", several: true, needed: true,
			about:     "two snapshots; one, with at given twice; or a directory or more files, one for each rank",
			documents: []reflect.Type{reflect.TypeFor[diff.PairDocument](), reflect.TypeFor[diff.RanksDocument]()},
		},
		{command: newStats(none), files: "file", needed: true, about: snapshot + ", a dump of memory_stats() or a log", documents: []reflect.Type{reflect.TypeFor[stats.Document]()}},
		{
			command: newPlan(none), files: "config", without: []string{"output", "trace", "curve"},
			about: "a model's config.json, or the folder with it; it may be left out if trainer names the model",
			documents: []reflect.Type{
				reflect.TypeFor[plan.Document](), reflect.TypeFor[plan.SweepDocument](), reflect.TypeFor[plan.CompareDocument](),
				reflect.TypeFor[plan.RoughDocument](), reflect.TypeFor[serveDocument](),
			},
		},
		{
			command: newDry(none), files: "ledger", needed: true, about: "the ledger that a dry run has written, such as run.dry.gz; no script is run",
			without: []string{"trace", "ledger", "steps", "world", "data", "no-save", "max", "vary", "curve"}, documents: []reflect.Type{reflect.TypeFor[dry.Document]()},
		},
	} {
		flags := t.flags()
		out = append(out, mcp.Tool{
			Name: t.command.Name(), Title: t.command.Short, Description: t.description(), Arguments: t.schema(flags), Documents: t.documents,
			Call: func(ctx context.Context, arguments map[string]any, progress func(string)) (*mcp.Answer, error) {
				args, err := t.commandLine(root, flags, arguments)
				if err != nil {
					return nil, errors.New(oneLine(err))
				}
				return ask(ctx, root, args, progress)
			},
		})
	}
	return out
}

// description is the command's help, without the exit status.
func (t *agentTool) description() string {
	help, _, _ := strings.Cut(t.command.Long, "\n\nExit status")
	return help
}

// flags are those that an agent has, by the name of the argument.
func (t *agentTool) flags() map[string]*pflag.Flag {
	out := map[string]*pflag.Flag{}
	t.command.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !slices.Contains([]string{"json", "markdown", "help"}, f.Name) && !slices.Contains(t.without, f.Name) {
			out[strings.ReplaceAll(f.Name, "-", "_")] = f
		}
	})
	return out
}

// schema describes the arguments.
func (t *agentTool) schema(flags map[string]*pflag.Flag) *jsonschema.Schema {
	file := &jsonschema.Schema{Type: "string"}
	if t.several {
		file = &jsonschema.Schema{Type: "array", Items: file}
	}
	file.Description = t.about
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{t.files: file}, PropertyOrder: []string{t.files},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	if t.needed {
		s.Required = []string{t.files}
	}
	t.command.Flags().VisitAll(func(f *pflag.Flag) { // in the order of the help
		name := strings.ReplaceAll(f.Name, "-", "_")
		if flags[name] == f {
			s.Properties[name] = flagSchema(f)
			s.PropertyOrder = append(s.PropertyOrder, name)
		}
	})
	return s
}

// flagSchema describes a flag.
func flagSchema(f *pflag.Flag) *jsonschema.Schema {
	_, usage := pflag.UnquoteUsage(f)
	s := &jsonschema.Schema{Description: usage}
	switch f.Value.Type() {
	case "bool":
		s.Type = "boolean"
	case "int", "int64":
		s.Type = "integer"
	case "float64":
		s.Type = "number"
	case "stringArray":
		s.Type, s.Items = "array", &jsonschema.Schema{Type: "string"}
	default:
		s.Type = "string"
	}
	switch v := f.Value.(type) {
	case *wordFlag:
		for _, w := range v.words {
			s.Enum = append(s.Enum, w)
		}
	case *countFlag:
		s.Type = "integer"
	case *planFlag:
		if _, most := v.option.Bounds(); most > 0 && len(v.complete()) == 0 {
			s.Type = "integer"
		}
	}
	return s
}

// commandLine writes the arguments as a command line, which has the same rules
// for them as any other.
func (t *agentTool) commandLine(root *mcp.Root, flags map[string]*pflag.Flag, arguments map[string]any) ([]string, error) {
	args := []string{t.command.Name(), "--json"}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		given, err := texts(arguments[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if name == t.files {
			continue
		}
		f := flags[name]
		if len(given) > 1 && f.Value.Type() != "stringArray" {
			return nil, fmt.Errorf("%s: write one value, not a list", name)
		}
		for _, value := range given {
			if kind, _ := pflag.UnquoteUsage(f); namesFile(kind) || kind == "DIR" {
				if err := mayName(root, value); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			if f.Name == "message" {
				value = "\n" + value // so it never is the name of a file
			}
			args = append(args, "--"+f.Name+"="+value)
		}
	}
	files, err := texts(arguments[t.files])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.files, err)
	}
	for _, file := range files {
		if err := mayName(root, file); err != nil {
			return nil, err
		}
		if strings.HasPrefix(file, "-") {
			file = "./" + file // it is no flag
		}
		args = append(args, file)
	}
	return args, nil
}

// mayName says why a file may not be asked about.
func mayName(root *mcp.Root, file string) error {
	switch file {
	case "":
		return errors.New("the name of a file is empty; give one")
	case "-":
		return errors.New("-: standard input belongs to the client; name a file")
	}
	return root.Check(file)
}

// texts writes an argument as the command line has it; a list gives several.
func texts(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case json.Number:
		return []string{v.String()}, nil
	case bool:
		return []string{fmt.Sprint(v)}, nil
	case []any:
		var out []string
		for _, e := range v {
			if _, nested := e.([]any); nested {
				return nil, errors.New("write a list of texts")
			}
			one, err := texts(e)
			if err != nil {
				return nil, err
			}
			out = append(out, one...)
		}
		return out, nil
	}
	return nil, errors.New("write a text, a number, true or false, or a list of them")
}
