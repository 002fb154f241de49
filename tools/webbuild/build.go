package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// A file that is made, by its name from the root of the repository.
type file struct {
	name string
	data []byte
}

// vendored says where the modules that the sources import are kept.
var vendored = map[string]string{
	"preact":               "preact/preact.mjs",
	"preact/hooks":         "preact/hooks.mjs",
	"preact/jsx-runtime":   "preact/jsxRuntime.mjs",
	"@preact/signals":      "signals/signals.module.js",
	"@preact/signals-core": "signals-core/signals-core.module.js",
}

// licences go into the head of the script: it holds copies of these modules.
var licences = []string{"preact", "signals", "signals-core"}

// distDir is where the page is.
const distDir = "internal/view/dist"

// page makes the files of the page from those of web.
func page(root string) ([]file, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	web := filepath.Join(root, "web")
	alias := make(map[string]string)
	for module, name := range vendored {
		alias[module] = filepath.Join(web, "vendor", filepath.FromSlash(name))
	}
	notice, err := notices(web)
	if err != nil {
		return nil, err
	}
	script := func(entry, banner string, plugins ...api.Plugin) ([]byte, error) {
		return bundle(api.BuildOptions{
			Plugins:           plugins,
			AbsWorkingDir:     root,
			EntryPoints:       []string{entry},
			Alias:             alias,
			Banner:            map[string]string{"js": banner},
			Format:            api.FormatIIFE,
			JSX:               api.JSXAutomatic,
			JSXImportSource:   "preact",
			Target:            api.ES2022,
			Charset:           api.CharsetUTF8,
			LegalComments:     api.LegalCommentsNone,
			TreeShaking:       api.TreeShakingTrue,
			MinifyWhitespace:  true,
			MinifyIdentifiers: true,
			MinifySyntax:      true,
		})
	}
	app, err := script("web/src/main.tsx", notice)
	if err != nil {
		return nil, err
	}
	worker, err := script("web/src/worker.ts", "")
	if err != nil {
		return nil, err
	}
	live, err := script("web/src/live/live.tsx", "", extra(filepath.Join(web, "src", "live")))
	if err != nil {
		return nil, err
	}
	fleet, err := script("web/src/fleet/fleet.tsx", "", extra(filepath.Join(web, "src", "fleet")))
	if err != nil {
		return nil, err
	}
	style, err := bundle(api.BuildOptions{
		AbsWorkingDir:    root,
		EntryPoints:      []string{"web/src/style/page.css"},
		Target:           api.ES2022,
		Charset:          api.CharsetUTF8,
		LegalComments:    api.LegalCommentsNone,
		MinifyWhitespace: true,
		MinifySyntax:     true,
	})
	if err != nil {
		return nil, err
	}
	document, err := os.ReadFile(filepath.Join(web, "index.html"))
	if err != nil {
		return nil, err
	}
	return []file{
		{distDir + "/index.html", document},
		{distDir + "/assets/app.js", app},
		{distDir + "/assets/app.css", style},
		{distDir + "/assets/fleet.js", fleet},
		{distDir + "/assets/live.js", live},
		{distDir + "/assets/worker.js", worker},
	}, nil
}

// extra lets the script of a screen that is loaded on demand take what the page
// has already: it imports its own folder, and web/src/shared.ts, which the page
// puts at globalThis.ashlar.
func extra(dir string) api.Plugin {
	return api.Plugin{Name: "extra", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			if args.Path == "../shared" || args.Path == "preact/jsx-runtime" {
				return api.OnResolveResult{Path: "shared", Namespace: "page"}, nil
			}
			if args.Kind != api.ResolveEntryPoint && (!strings.HasPrefix(args.Path, "./") || filepath.Dir(args.Importer) != dir) {
				return api.OnResolveResult{}, fmt.Errorf("%s imports %s: a screen with a script of its own takes that from ../shared", args.Importer, args.Path)
			}
			return api.OnResolveResult{}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "page"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
			code := "module.exports = globalThis.ashlar"
			return api.OnLoadResult{Contents: &code}, nil
		})
	}}
}

// bundle makes one file of an entry point and all that it imports.
func bundle(o api.BuildOptions) ([]byte, error) {
	o.Bundle = true
	o.Write = false
	o.Outfile = "out"
	o.LogLevel = api.LogLevelSilent
	r := api.Build(o)
	var wrong []error
	for _, m := range append(r.Errors, r.Warnings...) {
		if m.Location == nil {
			wrong = append(wrong, errors.New(m.Text))
			continue
		}
		wrong = append(wrong, fmt.Errorf("%s:%d:%d: %s", m.Location.File, m.Location.Line, m.Location.Column, m.Text))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	if len(r.OutputFiles) != 1 {
		return nil, fmt.Errorf("%s made %d files, not one", o.EntryPoints[0], len(r.OutputFiles))
	}
	return r.OutputFiles[0].Contents, nil
}

// notices is the comment that names the modules and their licence, which is the
// same for all but the line with the copyright.
func notices(web string) (string, error) {
	const mark = "Copyright (c)"
	var b strings.Builder
	b.WriteString("/*\nThe page of ashlar view. It holds these modules:\n\n")
	terms := ""
	for _, name := range licences {
		text, err := os.ReadFile(filepath.Join(web, "vendor", name, "LICENSE"))
		if err != nil {
			return "", err
		}
		before, rest, _ := strings.Cut(string(text), mark)
		owner, rest, found := strings.Cut(rest, "\n")
		if rest = strings.TrimSpace(before) + "\n\n" + strings.TrimSpace(rest); !found || terms != "" && terms != rest {
			return "", fmt.Errorf("vendor/%s/LICENSE is not the licence of the others: write it out in full", name)
		}
		terms = rest
		fmt.Fprintf(&b, "%s: %s%s\n", name, mark, owner)
	}
	fmt.Fprintf(&b, "\n%s\n*/", terms)
	return b.String(), nil
}
