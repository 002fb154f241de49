package view

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// A local server has no token and needs no host; it reads the files that it was
// given, and says what is wrong with one.
func TestLocal(t *testing.T) {
	data, err := os.ReadFile("../../testdata/variety/graphs.pickle.gz")
	if err != nil {
		t.Fatal(err)
	}
	s := NewLocal(t.Context(), File{"graphs.pickle.gz", data}, File{"broken.pickle", []byte("no pickle")})
	get := func(path string) *httptest.ResponseRecorder {
		t.Helper()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	list := get("/api/runs").Body.String()
	for strings.Contains(list, `"loading"`) {
		var l runList
		if err := json.Unmarshal([]byte(list), &l); err != nil {
			t.Fatal(err)
		}
		list = get(fmt.Sprintf("/api/runs?since=%d", l.Version)).Body.String() // waits for a change
	}
	if !strings.Contains(list, `"state":"ready"`) || !strings.Contains(list, "broken.pickle: ") || strings.Contains(list, `"dropped":true`) {
		t.Errorf("the runs are %s", list)
	}
	if w := get("/api/stats?run=1"); w.Code != 200 || !strings.Contains(w.Body.String(), `"graphs.pickle.gz"`) {
		t.Errorf("stats: %d %.200s", w.Code, w.Body)
	}
	if w := get("/api/nothing?run=1"); w.Code != 404 {
		t.Errorf("a path that is none: %d %s", w.Code, w.Body)
	}
}
