package view

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A ledger and the fields of the form go to whoever answers about ledgers.
func TestDry(t *testing.T) {
	var got DryQuestion
	c := serve(t, func(s *Server) {
		s.opts.MaxBytes = 20
		s.opts.Dry = func(_ context.Context, ledger io.Reader, q DryQuestion) (any, error) {
			got = q
			text, err := io.ReadAll(ledger)
			if strings.Contains(string(text), "bad") {
				err = errors.New("line 1: it is bad")
			}
			return map[string]string{"text": string(text)}, err
		}
	})
	var f planForm
	if c.json("api/plan", &f); !f.Ledgers {
		t.Error("the form offers no ledgers")
	}
	const octets = "application/octet-stream"
	for _, tt := range []struct {
		name, method, path, kind, body string
		status                         int
		want                           string
	}{
		{"a ledger", "POST", "api/dry?name=a/run.dry&gpu=h100&limit=1GiB&settings=x:1&curve=7", octets, "ledger", http.StatusOK, `"text":"ledger"`},
		{"a wrong one", "POST", "api/dry?name=run.dry", octets, "bad", http.StatusBadRequest, "line 1: it is bad"},
		{"too large", "POST", "api/dry?name=run.dry", octets, strings.Repeat("x", 21), http.StatusRequestEntityTooLarge, ""},
		{"no file", "POST", "api/dry?name=run.dry", "text/plain", "ledger", http.StatusUnsupportedMediaType, ""},
		{"no name", "POST", "api/dry", octets, "ledger", http.StatusBadRequest, "name=NAME"},
		{"no curve", "POST", "api/dry?name=run.dry&curve=x", octets, "ledger", http.StatusBadRequest, "curve"},
		{"no question", "GET", "api/dry", octets, "", http.StatusMethodNotAllowed, ""},
	} {
		status, _, reply := c.do(tt.method, tt.path, strings.NewReader(tt.body), "Content-Type", tt.kind)
		if status != tt.status || !strings.Contains(string(reply), tt.want) {
			t.Errorf("%s: %d %s", tt.name, status, reply)
		}
		if want := (DryQuestion{"run.dry", "h100", "1GiB", "x:1", 7}); tt.status == http.StatusOK && got != want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if status, _, _ := c.do("POST", "api/dry?name=run.dry", strings.NewReader("x"), "Content-Type", octets, "Origin", "http://elsewhere.example"); status != http.StatusForbidden {
		t.Errorf("another page's question: %d", status)
	}
	c.s.opts.Dry = nil
	if status, _, _ := c.do("POST", "api/dry?name=run.dry", strings.NewReader("x"), "Content-Type", octets); status != http.StatusNotFound {
		t.Errorf("without an answerer: %d", status)
	}
}
