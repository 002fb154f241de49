package run

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A text is seen even if it comes in pieces, among much else.
func TestOutput(t *testing.T) {
	o, seen, w, err := newOutput("ready now", "", "never")
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	defer w.Close()
	if seen[1] != nil {
		t.Error("an empty text is waited for")
	}
	fmt.Fprint(w, strings.Repeat("x", 100000), "\nrea", "dy n")
	select {
	case <-seen[0]:
		t.Error("seen too soon")
	case <-time.After(20 * time.Millisecond):
	}
	fmt.Fprint(w, "ow\nlast words\n  \n")
	select {
	case <-seen[0]:
	case <-time.After(time.Minute): // it hangs
		t.Fatal("not seen")
	}
	select {
	case <-seen[2]:
		t.Error("seen what was not printed")
	default:
	}
	w.Close()
	<-o.done
	if got := o.lastLine(); got != "last words" {
		t.Errorf("%q", got)
	}
}

func TestParseReady(t *testing.T) {
	for _, tt := range []struct{ text, url, want string }{
		{"Serving HTTP", "", "Serving HTTP"},
		{"http://127.0.0.1:80/x", "http://127.0.0.1:80/x", ""},
		{"https://localhost/", "https://localhost/", ""},
		{"http is up", "", "http is up"},
	} {
		r, err := ParseReady(tt.text)
		if err != nil || r.URL != tt.url || r.Text != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, r, err)
		}
	}
	for _, bad := range []string{"", "http://", "http://a b"} {
		if r, err := ParseReady(bad); err == nil {
			t.Errorf("%q is %+v", bad, r)
		}
	}
}
