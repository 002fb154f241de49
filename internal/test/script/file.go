package script

import (
	"fmt"
	"strings"
)

// RunFile runs the commands of a script and returns the script with what
// really happened under each command. A script that describes the allocator
// correctly comes back unchanged.
func RunFile(text string) (string, error) {
	r := New()
	var out strings.Builder
	answering := false // the lines that follow are an old answer
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		cmd, isCommand := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			answer, err := r.Run(cmd)
			if err != nil {
				return "", fmt.Errorf("line %d: %w", i+1, err)
			}
			if err := r.Check(); err != nil {
				return "", fmt.Errorf("line %d: after %q: %w", i+1, cmd, err)
			}
			out.WriteString(line + "\n" + answer)
			answering = true
		case line == "" || strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
			answering = false
		case !answering:
			return "", fmt.Errorf("line %d: %q is neither a command, nor an answer, nor a comment", i+1, line)
		}
	}
	return out.String(), nil
}
