package view

import (
	"io/fs"
	"path"

	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// pageTypes are the kinds of files that the page is made of.
var pageTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",
	".txt":  "text/plain; charset=utf-8",
}

// pageFiles reads the files of the page by the path they are asked for.
func pageFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, ok := pageTypes[path.Ext(name)]; !ok {
			return nil
		}
		files[name], err = fs.ReadFile(root, name)
		return err
	})
	if index, ok := files["index.html"]; ok {
		files[""] = index
	}
	return files, err
}

// page serves a file of the page.
func (s *Server) page(w http.ResponseWriter, r *http.Request, name string) error {
	body, ok := s.files[name]
	if !ok {
		return refuse(http.StatusNotFound, "there is no %q here", name)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return methodNotAllowed(w, "GET, HEAD")
	}
	kind := pageTypes[path.Ext(name)]
	if name == "" {
		kind = pageTypes[".html"]
	}
	w.Header().Set("Cache-Control", "no-cache") // the names have no versions
	s.send(w, http.StatusOK, kind, body)
	return nil
}

func methodNotAllowed(w http.ResponseWriter, allowed string) error {
	w.Header().Set("Allow", allowed)
	return refuse(http.StatusMethodNotAllowed, "this path takes %s", allowed)
}
