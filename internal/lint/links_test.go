package lint

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	fence     = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	linkEnd   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	scheme    = regexp.MustCompile(`^[a-z]+:`)
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	linkText  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	named     = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors returns the names that GitHub gives to the headings of a page, and those
// that the page gives itself.
func anchors(page string) []string {
	var all []string
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(strings.TrimSpace(linkText.ReplaceAllString(h[1], "$1")))
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(text, ""), " ", "-")
		name := slug
		for n := 1; slices.Contains(all, name); n++ {
			name = slug + "-" + strconv.Itoa(n)
		}
		all = append(all, name)
	}
	for _, a := range named.FindAllStringSubmatch(page, -1) {
		all = append(all, a[1])
	}
	return all
}

// brokenLinks lists the relative links of a page that lead nowhere. open returns
// the text of a file, or of a folder nothing, by its path from the root.
func brokenLinks(name, page string, open func(string) (string, error)) (broken []string) {
	text := codeSpan.ReplaceAllString(fence.ReplaceAllString(page, ""), "")
	for _, m := range linkEnd.FindAllStringSubmatch(text, -1) {
		if scheme.MatchString(m[1]) {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		to := page
		if file != "" {
			var err error
			if to, err = open(path.Join(path.Dir(name), file)); err != nil {
				broken = append(broken, name+": "+m[1]+" does not exist")
				continue
			}
		}
		if anchor != "" && !slices.Contains(anchors(to), anchor) {
			broken = append(broken, name+": "+m[1]+" has no such heading")
		}
	}
	return broken
}

// Every relative link in a Markdown page leads to a file, and to a heading if it
// names one.
func TestLinks(t *testing.T) {
	repository := os.DirFS("../..")
	open := func(name string) (string, error) {
		if info, err := fs.Stat(repository, name); err != nil || info.IsDir() {
			return "", err
		}
		text, err := fs.ReadFile(repository, name)
		return string(text), err
	}
	pages := 0
	err := fs.WalkDir(repository, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "node_modules", "bin", "tmp"}, d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		pages++
		page, err := open(name)
		for _, b := range brokenLinks(name, page, open) {
			t.Error(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 30 {
		t.Errorf("only %d pages were found", pages)
	}
}

func TestBrokenLinks(t *testing.T) {
	files := map[string]string{
		"a.md":      "# A page: its `name` & [more](b.md)\n\n```\n# not a heading\n```\n## Again\n## Again\n| <a id=\"row\"></a>x |\n",
		"docs/b.md": "",
	}
	open := func(name string) (string, error) {
		text, found := files[name]
		if !found {
			return "", fs.ErrNotExist
		}
		return text, nil
	}
	for _, tt := range []struct{ link, want string }{
		{"[x](b.md)", ""},
		{"[x](b.md) [y](c.md)", "docs/b.md: c.md does not exist"},
		{"![x](../b.md)", "docs/b.md: ../b.md does not exist"},
		{"[x](../a.md#a-page-its-name--more)", ""},
		{"[`x`](../a.md#again) [x](../a.md#again-1)", ""},
		{"[x](../a.md#row)", ""},
		{"[x](../a.md#again-2)", "docs/b.md: ../a.md#again-2 has no such heading"},
		{"[x](../a.md#not-a-heading)", "docs/b.md: ../a.md#not-a-heading has no such heading"},
		{"## Here\n[x](#here)", ""},
		{"## Here\n[x](#there)", "docs/b.md: #there has no such heading"},
		{"[x](https://example.com/c.md) `[x](c.md)`\n```\n[x](c.md)\n```\n", ""},
	} {
		if got := strings.Join(brokenLinks("docs/b.md", tt.link, open), "; "); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.link, got, tt.want)
		}
	}
}
