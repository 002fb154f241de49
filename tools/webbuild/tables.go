package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/present/palette"
)

const glossaryFile = "docs/glossary.md"

// tables makes what the page has of tables that are kept elsewhere: the colours
// of package palette, the words of the glossary.
func tables(root string) ([]file, error) {
	colours, err := constants("internal/present/palette", []constant{
		{"names", palette.Names()},
		{"ordinals", palette.Ordinals()},
		{"hues", palette.Hues},
		{"grey", palette.Grey},
	})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(glossaryFile)))
	if err != nil {
		return nil, err
	}
	words, err := constants(glossaryFile, []constant{{"glossary", glossary(string(text))}})
	if err != nil {
		return nil, err
	}
	return []file{{typesDir + "/palette.gen.ts", colours}, {typesDir + "/glossary.gen.ts", words}}, nil
}

type constant struct {
	name  string
	value any
}

func constants(from string, list []constant) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "// Made by make web from %s. Do not edit.\n", from)
	for _, c := range list {
		text, err := json.MarshalIndent(c.value, "", "  ")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\nexport const %s = %s as const;\n", c.name, text)
	}
	return []byte(b.String()), nil
}

var (
	section  = regexp.MustCompile(` \([0-9.]+\)`)
	markdown = strings.NewReplacer("`", "", "*", "", `\|`, "|")
)

// glossary reads the tables of the glossary: what each word means, as plain text.
func glossary(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || !strings.HasPrefix(line, "| ") || cells[0] == "| word" {
			continue
		}
		meaning := markdown.Replace(section.ReplaceAllString(strings.TrimSpace(cells[1]), ""))
		out[strings.TrimPrefix(cells[0], "| ")] = meaning
	}
	return out
}
