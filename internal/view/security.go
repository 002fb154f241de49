package view

import (
	"crypto/subtle"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// policy lets the page use what the server itself serves, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// protect sets the headers of every answer.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// hosts are the names under which the page is reached.
func hosts(port int) [2]string {
	p := strconv.Itoa(port)
	return [2]string{"127.0.0.1:" + p, "localhost:" + p}
}

// enter checks whether a request may be answered at all, and returns the path
// behind the token, which begins with a slash unless it is empty.
func (s *Server) enter(r *http.Request) (path string, err error) {
	if s.listener == nil {
		return r.URL.Path, nil
	}
	// A page that has its own name resolve to the loopback address sends that name.
	if r.Host != s.hosts[0] && r.Host != s.hosts[1] {
		return "", refuse(http.StatusForbidden, "this server answers under %s only", s.hosts[0])
	}
	if !plainPath(r.URL.Path) {
		return "", badRequest("the path has parts that no path here has: use those that the page uses")
	}
	token := strings.TrimPrefix(r.URL.Path, "/")
	if i := strings.IndexByte(token, '/'); i >= 0 {
		token, path = token[:i], token[i:]
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return "", refuse(http.StatusNotFound, "nothing is here without the token: use the whole address that ashlar view printed")
	}
	return path, nil
}

// plainPath refuses what could lead elsewhere.
func plainPath(path string) bool {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\\\x00") || strings.Contains(path, "//") {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return true
}

// ownOrigin checks that a request that changes something comes from the page.
// Browsers say where a request comes from; programs that are no browser say
// nothing, and have the token from the user.
func (s *Server) ownOrigin(r *http.Request) error {
	foreign := refuse(http.StatusForbidden, "the request comes from another page: use the one that ashlar view serves")
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return foreign
	}
	if origin, ok := r.Header["Origin"]; ok && (len(origin) != 1 || origin[0] != "http://"+r.Host) {
		return foreign
	}
	return nil
}
