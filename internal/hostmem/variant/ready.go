package variant

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed source/trim.c
var trimSource string

// trimName is the file name of the library that is built from trimSource.
const trimName = "libmalloctrim.so"

// Ready is a variant whose library is at hand.
type Ready struct {
	Variant
	Preload string // the file to preload; empty: none
}

// Missing is a variant that cannot run here.
type Missing struct {
	Variant string `json:"variant"`
	Needs   string `json:"needs"`   // what is not there
	Install string `json:"install"` // the command that installs it; empty if not known
}

// Search finds the libraries of variants on this machine. The malloc_trim
// thread, which no distribution ships, is built into scratch.
func Search(ctx context.Context, variants []Variant, scratch string) (ready []Ready, missing []Missing) {
	files := installed(ctx)
	family := family(osRelease())
	for _, v := range variants {
		switch {
		case v.Trim:
			file, err := buildTrim(ctx, scratch)
			if err != nil {
				missing = append(missing, Missing{v.Name, err.Error(), installCommand(family, "gcc libc6-dev")})
				continue
			}
			ready = append(ready, Ready{v, file})
		case v.Library == "":
			ready = append(ready, Ready{Variant: v})
		default:
			l := libraryOf(v.Library)
			if file := l.find(files); file != "" {
				ready = append(ready, Ready{v, file})
				continue
			}
			missing = append(missing, Missing{v.Name, l.stems[0] + ".so", installCommand(family, l.packages[family])})
		}
	}
	return ready, missing
}

// Compiler is the C compiler of this machine: $CC, cc or gcc; empty if there is
// none.
func Compiler() string {
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc"} {
		if name == "" {
			continue
		}
		if file, err := exec.LookPath(name); err == nil {
			return file
		}
	}
	return ""
}

// Build compiles C source into a file of scratch.
func Build(ctx context.Context, scratch, name, source string, flags ...string) (string, error) {
	cc := Compiler()
	if cc == "" {
		return "", errors.New("a C compiler")
	}
	src := filepath.Join(scratch, name+".c")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(scratch, name)
	args := append([]string{"-O2", "-pthread", "-o", file, src}, flags...)
	if out, err := exec.CommandContext(ctx, cc, args...).CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("a C compiler that works: %w: %s", err, first)
	}
	return file, nil
}

func buildTrim(ctx context.Context, scratch string) (string, error) {
	file := filepath.Join(scratch, trimName)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	return Build(ctx, scratch, trimName, trimSource, "-shared", "-fPIC")
}
