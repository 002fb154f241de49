package run

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// Any answer but a 5xx is one: what there is at the address does not matter.
func TestAsk(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(status)
	}))
	defer s.Close()
	r := &Ready{URL: s.URL}
	for _, tt := range []struct {
		status int
		want   bool
		why    string
	}{
		{http.StatusOK, true, ""},
		{http.StatusFound, true, ""},
		{http.StatusUnauthorized, true, ""},
		{http.StatusNotFound, true, ""},
		{http.StatusInternalServerError, false, "status 500 Internal Server Error"},
		{http.StatusServiceUnavailable, false, "status 503 Service Unavailable"},
		{599, false, "status 599"},
	} {
		status = tt.status
		ok, why := r.ask(t.Context())
		if ok != tt.want || ok != (why == nil) || !ok && why.Error() != tt.why {
			t.Errorf("%d: %v, %v", tt.status, ok, why)
		}
	}
}

// What a service prints last, before it ends, may be that it is ready.
func TestBeforeOrWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := make(chan struct{})
		w := &waiting{ready: ready}
		if got := w.beforeOrWhen(); got != "before" {
			t.Errorf("%s it was ready", got)
		}
		time.AfterFunc(moment-1, func() { close(ready) })
		if got := w.beforeOrWhen(); got != "as soon as" {
			t.Errorf("%s it was ready", got)
		}
	})
}
