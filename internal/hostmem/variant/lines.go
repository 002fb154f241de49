package variant

import (
	"path/filepath"
	"strings"
)

// Lines are what to write down to run a program under a variant.
type Lines struct {
	Shell      []string `json:"shell"`
	Dockerfile []string `json:"dockerfile"`
	Systemd    []string `json:"systemd"`
}

// trimHome is where the library with the malloc_trim thread is kept for good.
const trimHome = "/usr/local/lib/" + trimName

// Lines are the lines for a shell, a Dockerfile and a unit of systemd. The
// baseline needs none.
func (r *Ready) Lines() Lines {
	l := Lines{Shell: []string{}, Dockerfile: []string{}, Systemd: []string{}}
	vars := r.Variables()
	if len(vars) == 0 {
		return l
	}
	if r.Trim {
		vars[0].Value = trimHome
		l.Shell = append(l.Shell, trimBuild()...)
		l.Dockerfile = append(l.Dockerfile, "# built as for the shell, on the same distribution", "COPY "+trimName+" "+trimHome)
		l.Systemd = append(l.Systemd, "# built as for the shell")
	} else if r.Library != "" {
		l.Dockerfile = append(l.Dockerfile, "RUN "+install(libraryOf(r.Library).packages["debian"]))
	}
	for _, v := range vars {
		l.Shell = append(l.Shell, "export "+v.Name+"="+v.Value)
		l.Systemd = append(l.Systemd, "Environment="+entry(v))
		if v.Name == preload && !r.Trim {
			// By its name alone it is found on every architecture.
			v.Value = filepath.Base(v.Value)
		}
		l.Dockerfile = append(l.Dockerfile, "ENV "+entry(v))
	}
	return l
}

func install(packages string) string {
	return "apt-get update && apt-get install -y --no-install-recommends " + packages + " && rm -rf /var/lib/apt/lists/*"
}

// trimBuild builds the library from source on the command line.
func trimBuild() []string {
	lines := []string{"sudo cc -O2 -pthread -shared -fPIC -o " + trimHome + " -x c - <<'END'"}
	for line := range strings.Lines(trimSource) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return append(lines, "END")
}
