package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// singles are the files that can also be copied by hand. They are installed
// inside the package: the name ashlar belongs to another project.
var singles = []string{"ashlar.py", "ashlar_dry.py", "ashlar_torch.py"}

// wheel writes the Python package with the command in it. It is a zip with the
// files of the package, those that go to bin, and four that describe it:
// https://packaging.python.org/en/latest/specifications/binary-distribution-format/
func (b *build) wheel(out string) error {
	files, err := packageFiles()
	if err != nil {
		return err
	}
	if b.allocator != nil {
		files = append(files, file{"ashlar_mem/libashlar.so", b.allocator, 0o755})
	}
	base := "ashlar_mem-" + pythonVersion()
	files = append(files, file{base + ".data/scripts/" + b.file(), b.command, 0o755})
	meta, err := b.metadata(base + ".dist-info/")
	if err != nil {
		return err
	}
	files = append(files, meta...)
	record := base + ".dist-info/RECORD"
	files = append(files, file{record, recordOf(files, record), 0o644})
	data, err := zipped(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, base+"-py3-none-"+b.tag+".whl"), data, 0o644)
}

// packageFiles are the modules of ashlar_mem, the same on every system.
func packageFiles() ([]file, error) {
	paths, err := filepath.Glob("python/ashlar_mem/*.py")
	if err != nil {
		return nil, err
	}
	for _, name := range singles {
		paths = append(paths, "python/"+name)
	}
	var files []file
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"ashlar_mem/" + filepath.Base(path), data, 0o644})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

func (b *build) metadata(dir string) ([]file, error) {
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	about, err := os.ReadFile("README.md")
	if err != nil {
		return nil, err
	}
	head := []string{
		"Metadata-Version: 2.4",
		"Name: ashlar-mem",
		"Version: " + pythonVersion(),
		"Summary: Explains, predicts and manages the GPU memory of PyTorch jobs",
		"Project-URL: Source, https://github.com/ashlar-mem/ashlar",
		"License-Expression: Apache-2.0",
		"License-File: LICENSE",
		"License-File: THIRD-PARTY.txt",
		"Requires-Python: >=3.9",
		"Description-Content-Type: text/markdown",
	}
	var wheel bytes.Buffer
	wheel.WriteString("Wheel-Version: 1.0\nGenerator: ashlar tools/dist\nRoot-Is-Purelib: false\n")
	for tag := range strings.SplitSeq(b.tag, ".") {
		fmt.Fprintf(&wheel, "Tag: py3-none-%s\n", tag)
	}
	return []file{
		{dir + "METADATA", []byte(strings.Join(head, "\n") + "\n\n" + absoluteLinks(string(about))), 0o644},
		{dir + "WHEEL", wheel.Bytes(), 0o644},
		{dir + "licenses/LICENSE", own, 0o644},
		{dir + "licenses/THIRD-PARTY.txt", b.parts.text, 0o644},
		{dir + "sboms/ashlar.cdx.json", b.parts.sbom, 0o644},
	}, nil
}

var (
	relativeLink    = regexp.MustCompile(`\]\(([^):#]+)\)`)
	relativePicture = regexp.MustCompile(`(src|srcset)="([^":]+)"`)
)

// absoluteLinks makes the README's links and pictures work on a page elsewhere.
func absoluteLinks(page string) string {
	const repository = "https://github.com/ashlar-mem/ashlar/"
	page = relativeLink.ReplaceAllString(page, "]("+repository+"blob/main/$1)")
	return relativePicture.ReplaceAllString(page, `$1="`+repository+`raw/main/$2"`)
}

// recordOf lists the files with their sums; the list itself has none.
func recordOf(files []file, name string) []byte {
	var r bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&r, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&r, "%s,,\n", name)
	return r.Bytes()
}
