package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/version"
)

// parts says what a command is made of: the modules that the linker put into it
// and the scripts of the page.
type parts struct {
	list []part
	sbom []byte
	text []byte // all licences
}

type part struct {
	name, version, purl, licence string
	text                         []byte
}

// partsOf reads the modules from the command itself.
func partsOf(path string) (*parts, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := new(parts)
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := p.add("Go", strings.TrimPrefix(info.GoVersion, "go"), "pkg:golang/std@"+strings.TrimPrefix(info.GoVersion, "go"), root); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		dir, err := output("go", "list", "-m", "-f", "{{.Dir}}", module(m).Path)
		if err != nil {
			return nil, err
		}
		if err := p.add(module(m).Path, module(m).Version, "pkg:golang/"+module(m).Path+"@"+module(m).Version, dir); err != nil {
			return nil, err
		}
	}
	if err := p.addScripts(); err != nil {
		return nil, err
	}
	slices.SortFunc(p.list, func(a, b part) int { return strings.Compare(a.name, b.name) })
	p.text = p.licences()
	p.sbom, err = p.cyclone()
	return p, err
}

func module(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

// scripts are the libraries of the page: the folder in web/vendor, and the name.
var scripts = map[string]string{"preact": "preact", "signals": "@preact/signals", "signals-core": "@preact/signals-core"}

// addScripts adds the libraries of the page, whose versions npm's lock file has.
func (p *parts) addScripts() error {
	data, err := os.ReadFile("web/package-lock.json")
	if err != nil {
		return err
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return fmt.Errorf("web/package-lock.json: %w", err)
	}
	for dir, name := range scripts {
		v := lock.Packages["node_modules/"+name].Version
		if v == "" {
			return fmt.Errorf("web/package-lock.json has no %s, which lies in web/vendor/%s", name, dir)
		}
		if err := p.add(name, v, "pkg:npm/"+strings.Replace(name, "@", "%40", 1)+"@"+v, filepath.Join("web/vendor", dir)); err != nil {
			return err
		}
	}
	return nil
}

func (p *parts) add(name, version, purl, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "LICEN[SC]E*"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files, _ = filepath.Glob(filepath.Join(dir, "COPYING*"))
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no licence in %s", name, dir)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	id := identify(string(text))
	if id == "" {
		return fmt.Errorf("the licence of %s is none that is known: %s", name, files[0])
	}
	notices, err := filepath.Glob(filepath.Join(dir, "NOTICE*")) // Apache 2.0, section 4(d)
	if err != nil {
		return err
	}
	for _, name := range notices {
		notice, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text = append(append(text, '\n'), notice...)
	}
	p.list = append(p.list, part{name, version, purl, id, text})
	return nil
}

// identify names the licences in a text by what only they say, as an SPDX expression.
func identify(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	var ids []string
	if strings.Contains(text, "Apache License Version 2.0") {
		ids = append(ids, "Apache-2.0")
	}
	if strings.Contains(text, "Redistribution and use in source and binary forms") {
		if strings.Contains(text, "Neither the name") {
			ids = append(ids, "BSD-3-Clause")
		} else {
			ids = append(ids, "BSD-2-Clause")
		}
	}
	if strings.Contains(text, "Permission is hereby granted, free of charge") {
		ids = append(ids, "MIT")
	}
	return strings.Join(ids, " AND ")
}

func (p *parts) licences() []byte {
	var b bytes.Buffer
	b.WriteString("Ashlar is under the Apache License 2.0 (LICENSE). The command contains:\n")
	for _, x := range p.list {
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n\n%s\n", strings.Repeat("-", 72), x.name, x.version, x.licence, bytes.TrimSpace(x.text))
	}
	return b.Bytes()
}

// cyclone is the list of parts as CycloneDX 1.5 has it, without time and serial number.
func (p *parts) cyclone() ([]byte, error) {
	type licence struct {
		Expression string `json:"expression"`
	}
	type component struct {
		Type     string    `json:"type"`
		Ref      string    `json:"bom-ref"`
		Name     string    `json:"name"`
		Version  string    `json:"version"`
		Licenses []licence `json:"licenses"`
		PURL     string    `json:"purl"`
	}
	of := func(kind, name, version, purl, id string) component {
		return component{kind, purl, name, version, []licence{{id}}, purl}
	}
	components := make([]component, 0, len(p.list))
	for _, x := range p.list {
		components = append(components, of("library", x.name, x.version, x.purl, x.licence))
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat":   "CycloneDX",
		"specVersion": "1.5",
		"version":     1,
		"metadata": map[string]any{
			"component": of("application", "ashlar", version.Text, "pkg:golang/github.com/ashlar-mem/ashlar@"+version.Text, "Apache-2.0"),
		},
		"components": components,
	}, "", "  ")
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
