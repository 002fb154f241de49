package lint

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const specification = root + "/docs/spec/pytorch-2.11-allocator.md"

var (
	citations = regexp.MustCompile(`\bspec (\d+(?:\.\d+)*(?:(?:, | and | or |-)\d+(?:\.\d+)*)*)`)
	section   = regexp.MustCompile(`\d+(?:\.\d+)*`)
	headings  = regexp.MustCompile(`(?m)^#+ (\d+(?:\.\d+)*)\.? `)
)

// sections lists the numbers of a page's headings.
func sections(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(page, -1) {
		all[m[1]] = true
	}
	return all
}

// cited lists the sections that a text cites, as "spec 1.2" or "spec 1.2, 3.4".
// A number after a comma is a section only if it has a dot.
func cited(text string) (numbers []string) {
	for _, m := range citations.FindAllStringSubmatch(text, -1) {
		for i, n := range section.FindAllString(m[1], -1) {
			if i == 0 || strings.Contains(n, ".") {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}

func TestSpecification(t *testing.T) {
	page, err := os.ReadFile(specification)
	if err != nil {
		t.Fatal(err)
	}
	known, found := sections(string(page)), 0
	err = walk(func(name, text string) error {
		if name == "internal/lint/spec_test.go" {
			return nil
		}
		for i, line := range strings.Split(text, "\n") {
			for _, n := range cited(line) {
				found++
				if !known[n] {
					t.Errorf("%s:%d: the specification has no section %s", name, i+1, n)
				}
			}
		}
		return nil
	})
	if err != nil || found < 100 {
		t.Errorf("%d citations, %v", found, err)
	}
}

func TestCited(t *testing.T) {
	const text = "see spec 1.2 and 4.1; spec 3.2, 11.2: and spec 14, 9 times; inspec 5, spec7, (spec 7.3)."
	if got := fmt.Sprint(cited(text)); got != "[1.2 4.1 3.2 11.2 14 7.3]" {
		t.Error(got)
	}
	if got := fmt.Sprint(sections("## 1. Sizes\n\n### 1.1 Constants [V]\n1.2 no\n#2 no\n# 10 x\n")); got != "map[1:true 1.1:true 10:true]" {
		t.Error(got)
	}
}
