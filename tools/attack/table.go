package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/test/attack"
)

// table gives the files of the corpus to every command and prints the worst of each as
// a table: the bar is the budget of attack.Case.Judge.
func (a *attacker) table(ctx context.Context, g *attack.Generator, files []string) {
	fmt.Println("| file | unpacked | worst answer: CPU | memory | worst refusal: CPU | memory | within the budget |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, file := range files {
		if ctx.Err() != nil {
			return
		}
		c := g.Given(file)
		var cpu [2]time.Duration
		var memory [2]int64
		before := a.findings
		for _, line := range c.Commands {
			r := a.run(c, a.expand(line, file))
			a.runs++
			refused := 0
			if r.Code == 2 {
				refused = 1
			}
			cpu[refused], memory[refused] = max(cpu[refused], r.CPU), max(memory[refused], r.Memory)
			a.report(c, line, c.Judge(r))
		}
		a.cases++
		fmt.Printf("| `%s` | %.1f MB | %s | %s | %s | %s | %s |\n", filepath.Base(file), float64(c.Unpacked)/1e6,
			seconds(cpu[0]), megabytes(memory[0]), seconds(cpu[1]), megabytes(memory[1]), map[bool]string{true: "yes", false: "**no**"}[a.findings == before])
	}
}

// counts gives the files of the corpus and variations of each to some commands, and
// prints as a table how many runs answered and how many refused.
func (a *attacker) counts(ctx context.Context, g *attack.Generator, files []string, variations int) {
	fmt.Println("| file | inputs | runs | answered | refused in one line | findings |")
	fmt.Println("|---|---:|---:|---:|---:|---:|")
	for _, file := range files {
		if ctx.Err() != nil {
			return
		}
		before := *a
		a.attack(ctx, g.Given(file))
		for range variations {
			a.attack(ctx, g.Variation(file))
		}
		runs, refused := a.runs-before.runs, a.refused-before.refused
		fmt.Printf("| `%s` | %d | %d | %d | %d | %d |\n", filepath.Base(file), a.cases-before.cases, runs, runs-refused, refused, a.findings-before.findings)
	}
}

func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func megabytes(n int64) string {
	if n == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%4.0f MB", float64(n)/1e6))
}
