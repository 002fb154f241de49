package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/internal/test/attack"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == helperFlag {
		if err := help(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "attack:", err)
			os.Exit(2)
		}
		return
	}
	var a attacker
	root := flag.String("root", "..", "the repository, whose testdata inputs are made from")
	corpus := flag.String("corpus", "", "a `folder` of files that are given as they are, and in variations")
	variations := flag.Int("variations", 20, "of each file of the corpus, before anything else")
	seed := flag.Uint64("seed", 1, "the same seed gives the same inputs")
	minutes := flag.Float64("minutes", 1, "how long")
	count := flag.Int("count", 0, "number of inputs instead")
	table := flag.Bool("table", false, "give the corpus to every command, and print the time and memory of each file")
	counts := flag.Bool("counts", false, "print what became of each file of the corpus and its variations, and end after them")
	only := flag.String("only", "", "an input's `words` in part; others are left out")
	flag.StringVar(&a.bin, "bin", "../bin/ashlar", "the `command`")
	flag.StringVar(&a.keep, "keep", "../bin/attack", "the `folder` for inputs of findings")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := a.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	defer os.RemoveAll(a.dir)
	files := corpusFiles(*corpus, *root)
	g, err := attack.New(*seed, *root, files)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	a.good, a.only = g.Good, *only
	begun := time.Now()
	if *table {
		a.table(ctx, g, files)
		*variations, *count, *minutes = 0, 0, 0
	}
	if *counts {
		a.counts(ctx, g, files, *variations)
		*variations, *count, *minutes = 0, 0, 0
	}
	if !*table && !*counts {
		for _, c := range g.Sweep() {
			a.attack(ctx, c)
		}
	}
	if *variations > 0 && *only == "" {
		for _, file := range files {
			a.attack(ctx, g.Given(file))
			for range *variations {
				a.attack(ctx, g.Variation(file))
			}
		}
	}
	end := begun.Add(time.Duration(*minutes * float64(time.Minute)))
	for i := 0; ctx.Err() == nil && (i < *count || *count == 0 && time.Now().Before(end)); i++ {
		a.attack(ctx, g.Next())
	}
	a.page.close(&a)
	fmt.Printf("seed %d: %d inputs, %d runs of the command, %d requests to the page, %.1f min: %d findings, %d distinct\n",
		*seed, a.cases, a.runs, a.page.requests, time.Since(begun).Minutes(), a.findings, len(a.seen))
	if len(a.seen) > 0 {
		os.Exit(1)
	}
}

// corpusFiles returns the files of a folder and those that the repository keeps.
func corpusFiles(dir, root string) []string {
	all, _ := filepath.Glob(filepath.Join(root, "cmd/ashlar/testdata/hostile/*"))
	if dir != "" {
		more, _ := filepath.Glob(filepath.Join(dir, "*"))
		all = append(all, more...)
	}
	return all
}
