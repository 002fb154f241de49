package main

import (
	"bytes"
	"flag"
	"log"
	"os"
	"path/filepath"
)

const root = ".." // go -C tools starts it in tools

func main() {
	log.SetFlags(0)
	log.SetPrefix("claims: ")
	bin := flag.String("ashlar", root+"/bin/ashlar", "the command")
	flag.Parse()
	if err := run(*bin, root+"/docs/claims.md"); err != nil {
		log.Fatal(err)
	}
}

// run writes the page.
func run(bin, out string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	l, err := newLab(root, bin)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := writePage(&page, l); err != nil {
		return err
	}
	return os.WriteFile(out, page.Bytes(), 0o644)
}
