package view

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/playground"
)

// The playground works without any file.
func TestPlayground(t *testing.T) {
	c := serve(t, nil)
	var l lessons
	c.json("api/playground", &l)
	if l.Version != playground.Version || len(l.List) != len(playground.Experiments()) || l.MaxLines != playground.MaxLines {
		t.Fatalf("lessons: %+v", l)
	}
	ask := func(body string) *playground.Answer {
		t.Helper()
		status, _, reply := c.do("POST", "api/playground", strings.NewReader(body), "Content-Type", "application/json; charset=utf-8")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", body, status, reply)
		}
		var a playground.Answer
		if err := json.Unmarshal(reply, &a); err != nil {
			t.Fatal(err)
		}
		return &a
	}
	for _, e := range l.List {
		lines, _ := json.Marshal(e.Lines)
		a := ask(fmt.Sprintf(`{"version": 1, "lines": %s}`, lines))
		if a.At != len(a.Steps) || len(a.Steps) < 5 || len(a.Moment.Sentences) == 0 {
			t.Errorf("%s: %+v", e.Name, a)
		}
		if at := ask(fmt.Sprintf(`{"version": 1, "lines": %s, "at": 2}`, lines)); at.At != 2 || at.Moment.ReservedBytes != a.Steps[1].ReservedBytes {
			t.Errorf("%s after two steps: %+v", e.Name, at.Moment)
		}
	}
	if len(l.Exercises) != len(playground.Exercises()) || len(l.Exercises[0].Questions) == 0 {
		t.Errorf("exercises: %+v", l.Exercises)
	}
	_, _, reply := c.do("POST", "api/playground", strings.NewReader(`{"version": 1, "exercise": "three-am", "answers": ["18 GiB", "18 GiB", "no", ""]}`),
		"Content-Type", "application/json")
	var g grades
	if err := json.Unmarshal(reply, &g); err != nil || len(g.Verdicts) != 4 || !g.Verdicts[0].Right || g.Verdicts[1].Right || g.Verdicts[1].Expected != "0 B" {
		t.Errorf("graded: %s, %v", reply, err)
	}
	if a := ask(`{"version": 1}`); a.At != 0 || len(a.Steps) != 0 {
		t.Errorf("nothing to play: %+v", a)
	}
}

func TestPlaygroundRefuses(t *testing.T) {
	c := serve(t, nil)
	kind := []string{"Content-Type", "application/json"}
	for _, x := range []struct {
		what, method, body, says string
		status                   int
		headers                  []string
	}{
		{"no type", "POST", `{"version":1}`, "application/json", 415, nil},
		{"a form", "POST", `{"version":1}`, "application/json", 415, []string{"Content-Type", "text/plain"}},
		{"another page", "POST", `{"version":1}`, "another page", 403, append(kind, "Origin", "http://evil.example")},
		{"cross-site", "POST", `{"version":1}`, "another page", 403, append(kind, "Sec-Fetch-Site", "cross-site")},
		{"a method", "DELETE", "", "GET, HEAD, POST", 405, nil},
		{"no document", "POST", `{"version"`, "cannot be read", 400, kind},
		{"other types", "POST", `{"version":1,"lines":[1]}`, "cannot be read", 400, kind},
		{"a later version", "POST", `{"version":2}`, "this ashlar plays version 1", 400, kind},
		{"no exercise", "POST", `{"version":1,"exercise":"x"}`, `there is no exercise "x": there are hundred`, 400, kind},
		{"no step", "POST", `{"version":1,"lines":["dance"]}`, `line 1, "dance": there is no step "dance"`, 400, kind},
		{"a step too far", "POST", `{"version":1,"lines":["empty"],"at":2}`, "there is no step 2", 400, kind},
		{"a step before", "POST", `{"version":1,"lines":["empty"],"at":-2}`, "there is no step -2", 400, kind},
		{"the step before the first", "POST", `{"version":1,"lines":["empty"],"at":-1}`, "there is no step -1", 400, kind},
		{"too many lines", "POST", `{"version":1,"lines":["` + strings.Repeat(`empty","`, playground.MaxLines) + `"]}`, "at most 2,000", 400, kind},
		{"too large", "POST", `{"version":1,"lines":["` + strings.Repeat("x", maxExperiment) + `"]}`, "larger than", 413, kind},
	} {
		status, _, body := c.do(x.method, "api/playground", strings.NewReader(x.body), x.headers...)
		refused(t, x.what, x.status, status, body)
		var said struct{ Error string }
		if json.Unmarshal(body, &said) != nil || !strings.Contains(said.Error, x.says) {
			t.Errorf("%s: %s, want something with %q", x.what, body, x.says)
		}
	}
}
