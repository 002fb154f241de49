package lint

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/yaml"
)

// shape is what a mapping of one of GitHub's files may have: for each key, the
// shape of what it holds; nil for a scalar or whatever else. The key * stands for
// names that we choose, [] for the items of a list.
type shape map[string]shape

var (
	step     = shape{"id": nil, "name": nil, "uses": nil, "with": {"*": nil}, "env": {"*": nil}, "run": nil, "shell": nil, "if": nil}
	workflow = shape{
		"name": nil, "on": {"*": {"branches": {"[]": nil}, "tags": {"[]": nil}}}, "permissions": {"contents": nil},
		"jobs": {"*": {"runs-on": nil, "timeout-minutes": nil, "steps": {"[]": step}}},
	}
	action = shape{
		"name": nil, "description": nil, "inputs": {"*": {"description": nil, "required": nil, "default": nil}},
		"outputs": {"*": {"description": nil, "value": nil}}, "runs": {"using": nil, "steps": {"[]": step}},
	}
	form = shape{"name": nil, "description": nil, "labels": {"[]": nil}, "body": {"[]": {
		"type": nil, "id": nil, "validations": {"required": nil},
		"attributes": {"label": nil, "description": nil, "placeholder": nil, "render": nil, "options": {"[]": {"label": nil, "required": nil}}},
	}}}
	formConfig = shape{"blank_issues_enabled": nil, "contact_links": {"[]": {"name": nil, "url": nil, "about": nil}}}
)

// misfits lists what of a value is not in its shape.
func misfits(at string, v yaml.Value, s shape) (all []string) {
	if s == nil {
		return nil
	}
	for _, e := range v.Entries {
		inner, known := s[e.Key]
		if !known {
			inner, known = s["*"]
		}
		if !known {
			all = append(all, at+"."+e.Key+" is no key of GitHub's")
		}
		all = append(all, misfits(at+"."+e.Key, e.Value, inner)...)
	}
	for _, item := range v.Items {
		if _, known := s["[]"]; !known {
			return append(all, at+" is a list")
		}
		all = append(all, misfits(at+"[]", item, s["[]"])...)
	}
	return all
}

func shapeOf(name string) shape {
	switch folder := path.Base(path.Dir(name)); {
	case folder == "workflows":
		return workflow
	case path.Base(name) == "action.yml":
		return action
	case path.Base(name) == "config.yml":
		return formConfig
	case folder == "ISSUE_TEMPLATE":
		return form
	}
	return nil
}

// localSteps are the commands of steps, and what runs them here.
var localSteps = map[string]string{
	".ci/run":        "make test",
	"make dist":      "itself",
	"make dist-test": "itself",
	"make vuln":      "itself",
	`tools/scripts/release "$GITHUB_REF_NAME"`: "tools/dist/release_test.go",
	`python3 "$GITHUB_ACTION_PATH/check.py"`:   "python/test_action.py, cmd/ashlar/testdata/script/check-markdown.txtar",
}

var pinned = regexp.MustCompile(`^actions/[a-z-]+@v[0-9]+$`)

// wrongSteps lists the steps that nothing here runs, or that take an expression
// into a shell, where what somebody called a branch would be run.
func wrongSteps(at string, v yaml.Value, used map[string]bool) (all []string) {
	for _, e := range v.Entries {
		switch e.Key {
		case "run":
			if _, ok := localSteps[e.Value.Text]; !ok {
				all = append(all, at+": nothing runs "+e.Value.Text+" here")
			}
			used[e.Value.Text] = true
		case "uses":
			if !pinned.MatchString(e.Value.Text) {
				all = append(all, at+": "+e.Value.Text+" is not an action of GitHub with a version")
			}
		}
		all = append(all, wrongSteps(at, e.Value, used)...)
	}
	for _, item := range v.Items {
		all = append(all, wrongSteps(at, item, used)...)
	}
	return all
}

// What is under .github is well-formed, has only keys that GitHub knows, and runs
// nothing that is not run here.
func TestGitHub(t *testing.T) {
	repository := os.DirFS(root)
	used := map[string]bool{}
	files := 0
	err := fs.WalkDir(repository, ".github", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".yml" {
			return err
		}
		files++
		raw, err := fs.ReadFile(repository, name)
		if err != nil {
			return err
		}
		v, err := yaml.Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		s := shapeOf(name)
		if s == nil {
			t.Errorf("%s: what is this file?", name)
		}
		for _, wrong := range append(misfits(name, v, s), wrongSteps(name, v, used)...) {
			t.Error(wrong)
		}
		return nil
	})
	if err != nil || files < 6 {
		t.Fatalf("%d files, %v", files, err)
	}
	for command := range localSteps {
		if !used[command] {
			t.Errorf("no step runs %s", command)
		}
	}
	makefile, err := fs.ReadFile(repository, "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for command := range localSteps {
		word, rest, _ := strings.Cut(command, " ")
		if word == "make" && !slices.Contains(strings.Split(string(makefile), "\n"), rest+":") && !strings.Contains(string(makefile), "\n"+rest+": ") {
			t.Errorf("there is no make %s", rest)
		} else if info, err := fs.Stat(repository, word); strings.Contains(word, "/") && (err != nil || info.Mode()&0o111 == 0) {
			t.Errorf("%s cannot be run: %v", word, err)
		}
	}
}

func TestGitHubRules(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"on:\n  push:\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: make dist\n", ""},
		{"jobs:\n  a:\n    step:\n      - run: make dist\n", "f.jobs.a.step is no key of GitHub's"},
		{"jobs:\n  a:\n    steps:\n      - run: echo ${{ github.head_ref }}\n", "f: nothing runs echo ${{ github.head_ref }} here"},
		{"jobs:\n  a:\n    steps:\n      - uses: someone/else@main\n", "f: someone/else@main is not an action of GitHub with a version"},
		{"jobs:\n  - a\n", "f.jobs is a list"},
	} {
		v, err := yaml.Parse([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(append(misfits("f", v, workflow), wrongSteps("f", v, map[string]bool{})...), "; "); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
