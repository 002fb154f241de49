package message

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// wrap breaks a text into lines of at most width bytes, at blanks, or anywhere
// if hard.
func wrap(text string, width int, hard bool) []string {
	var lines []string
	for _, text := range strings.Split(text, "\n") {
		for len(text) > width {
			at := width
			if i := strings.LastIndexByte(text[:width], ' '); i > 0 && !hard {
				at = i
			}
			lines = append(lines, text[:at])
			text = text[at:]
		}
		lines = append(lines, text)
	}
	return lines
}

// each puts something around every line.
func each(format string) func([]string) string {
	return func(lines []string) string {
		var b strings.Builder
		for i, l := range lines {
			if strings.Contains(format, "%d") {
				fmt.Fprintf(&b, format, 10+i, l)
			} else {
				fmt.Fprintf(&b, format, l)
			}
		}
		return b.String()
	}
}

var pastes = map[string]func([]string) string{
	"plain":      each("%s\n"),
	"windows":    each("%s\r\n"),
	"markdown":   each("> %s\n"),
	"mail":       each(">>   > %s\n"),
	"torchrun":   each("[rank3]: %s\n"),
	"elastic":    each("[default7]:[rank7]: %s\n"),
	"mpirun":     each("[1,3]<stderr>: %s\n"),
	"srun":       each("12: %s\n"),
	"vLLM":       each("(EngineCore_DP0 pid=270) ERROR 11-19 12:16:%d [v1/engine/core.py:842] %s\n"),
	"ray":        each("(train_fn pid=2657296, ip=10.0.0.7) 2024-05-11 14:10:%d.224 %s\n"),
	"cloud":      each("INFO 2025-11-19T20:16:%d.096674521Z [resource.labels.containerName: vllm] %s\n"),
	"logging":    each("2024-12-16 17:%d:56,767 - root - ERROR - %s\n"),
	"glog":       each("E0508 12:00:%d.123456  4242 worker.cc:77] %s\n"),
	"glog short": each("E0508 12:00:%d %s\n"),
	"syslog":     each("May  8 12:00:%d gpu-node-1 trainer[4242]: %s\n"),
	"kubelet":    each("2024-05-08T12:00:%d.123456789Z stderr F %s\n"),
	"compose":    each("worker-1  | %s\n"),
	"actions":    each("2025-11-12T11:25:%d.4961658Z %s\n"),
	"colours":    each("\x1b[31m%s\x1b[0m\n"),
	"colours within": func(lines []string) string {
		return strings.ReplaceAll(strings.Join(lines, "\n"), " GiB", "\x1b[1;33m GiB\x1b[0m")
	},
	"unknown":          each("my-job-7f9c5/step %d (attempt #2) ~~ : %s\n"),
	"unknown, symbols": each("== node17 == lr=1e-4 | ep %d> %s\n"),
	"docker": func(lines []string) string {
		var b strings.Builder
		for i, l := range lines {
			j, _ := json.Marshal(map[string]string{"log": l + "\n"})
			fmt.Fprintf(&b, "%s,\"stream\":\"stderr\",\"time\":\"2024-05-08T12:00:%02d.123Z\"}\n", strings.TrimSuffix(string(j), "}"), i)
		}
		return b.String()
	},
	"JSON": func(lines []string) string {
		j, _ := json.Marshal(map[string]string{"level": "error", "message": "step failed: \x1b[31m" + strings.Join(lines, "\n")})
		return string(j)
	},
	"JSON in JSON": func(lines []string) string {
		j, _ := json.Marshal(strings.Join(lines, "\r\n"))
		k, _ := json.Marshal(map[string]string{"payload": string(j)})
		return string(k)
	},
	"Python repr": func(lines []string) string {
		return "raise err from OutOfMemoryError('" + strings.Join(lines, `\n`) + "')\n"
	},
	"table": func(lines []string) string {
		return "| step | error |\n|---|---|\n| 7 | " + strings.Join(lines, " ") + " |\n"
	},
	"web page": func(lines []string) string {
		return strings.ReplaceAll(strings.Join(lines, "\n"), " ", "\u00a0")
	},
}

// TestPastes: each message, broken in many ways and pasted with all kinds of
// prefixes, reads the same.
func TestPastes(t *testing.T) {
	for name, paste := range pastes {
		t.Run(name, func(t *testing.T) {
			for _, tt := range short.Some(wild, 6) {
				if strings.Contains(tt.want, "v2.3") || strings.Contains(tt.text, "...") || strings.Contains(tt.text, "[W713") {
					continue // these end, or begin, with their line
				}
				if strings.HasPrefix(name, "unknown") && !strings.Contains(tt.want, "total") && !strings.Contains(tt.want, "allocated") {
					continue // so short that a prefix inside hides all of it
				}
				want := tt.want
				for _, width := range []int{1 << 20, 120, 80, 60} {
					lines := wrap(tt.text, width, false)
					text := "Traceback (most recent call last):\n" + paste(lines) + "\nand that was it\n"
					all := parse(t, text)
					if len(all) != 1 {
						t.Fatalf("%s at %d: %d messages in\n%s", tt.name, width, len(all), text)
					}
					got := brief(all[0])
					if all[0].Exception == "OutOfMemoryError" && name == "Python repr" {
						continue
					}
					if got != want {
						t.Fatalf("%s at %d:\ngot  %s\nwant %s\nin\n%s", tt.name, width, got, want, text)
					}
				}
			}
		})
	}
}

// TestHardBreaks: a console that breaks lines inside words and numbers.
func TestHardBreaks(t *testing.T) {
	for _, tt := range short.Some(wild, 6) {
		if strings.Contains(tt.want, "v2.3") || strings.Contains(tt.text, "...") || strings.HasSuffix(tt.want, "Error") {
			continue // these end with their line, or are known by a word that may be broken
		}
		for width := 17; width < 120; width += 3 {
			text := strings.Join(wrap(tt.text, width, true), "\r\n")
			all := parse(t, text)
			if len(all) != 1 {
				t.Fatalf("%s at %d: %d messages in\n%s", tt.name, width, len(all), text)
			}
			got, want := *all[0], *parse(t, tt.text)[0]
			got.Exception, got.Version, got.Advice = want.Exception, want.Version, want.Advice // broken too
			if brief(&got) != brief(&want) {
				t.Fatalf("%s at %d:\ngot  %s\nwant %s\nin\n%s", tt.name, width, brief(&got), brief(&want), text)
			}
		}
	}
}

// TestRandomBlanks: line ends for any of the blanks.
func TestRandomBlanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, tt := range wild {
		if strings.Contains(tt.want, "v2.3") || strings.Contains(tt.text, "...") {
			continue
		}
		for range 20 {
			b := []byte(tt.text)
			for i, c := range b {
				if c == ' ' && rng.IntN(4) == 0 {
					b[i] = '\n'
				}
			}
			all := parse(t, string(b))
			if len(all) != 1 || brief(all[0]) != tt.want {
				t.Fatalf("%s: %d messages, %s\nwant %s\nin\n%s", tt.name, len(all), brief(all[0]), tt.want, b)
			}
		}
	}
}

func TestSeveral(t *testing.T) {
	const one = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU %d has a total capacity of 79.15 GiB of which 10.25 MiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
	var b strings.Builder
	for rank := range 8 {
		fmt.Fprintf(&b, "[rank%d]: Traceback (most recent call last):\n[rank%d]: "+one+"\n", rank, rank, 20+2*rank, rank)
	}
	all := parse(t, b.String())
	if len(all) != 8 {
		t.Fatalf("%d messages", len(all))
	}
	for rank, o := range all {
		if o.Device != rank || o.Line != 2*rank+2 || o.TriedBytes.Mid != uint64(20+2*rank)<<20 || !strings.HasPrefix(o.Text, "CUDA out") || !strings.HasSuffix(o.Text, "unallocated.") {
			t.Errorf("rank %d: line %d: %s", rank, o.Line, brief(o))
		}
	}
	// Nothing at all between them.
	glued := strings.Repeat(strings.TrimSpace(fmt.Sprintf(one, 20, 3)), 5)
	if all := parse(t, glued); len(all) != 5 {
		t.Errorf("%d of 5 glued messages", len(all))
	}
	// A process list longer than the first look.
	long := "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 0 bytes is free. " +
		strings.Repeat("Process 31337 has 301.00 MiB memory in use. ", 260) + "Of the allocated memory 1.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
	if all := parse(t, long); len(all) != 1 || len(all[0].Processes) != 260 || all[0].ReservedUnallocatedBytes == nil {
		t.Errorf("long process list: %d messages, %d processes", len(all), len(all[0].Processes))
	}
}
