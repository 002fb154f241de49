package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page has the words of the glossary, as plain text.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(glossaryFile)))
	if err != nil {
		t.Fatal(err)
	}
	words := glossary(string(text))
	for _, word := range []string{"allocated", "reserved", "reserved but unallocated", "active", "requested", "pending", "free", "OOM", "backward"} {
		if words[word] == "" {
			t.Errorf("the glossary has no %q", word)
		}
	}
	for word, meaning := range words {
		if meaning == "" || strings.ContainsAny(word+meaning, "`*") {
			t.Errorf("%q means %q", word, meaning)
		}
	}
	got := glossary("| word | meaning | not |\n|---|---|---|\n| free | *not* active `x` (1.2) | idle |\n")
	if len(got) != 1 || got["free"] != "not active x" {
		t.Errorf("a table of one word is read as %q", got)
	}
}
