package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/version"
)

// stamp is the time of every file: the earliest that a zip can have.
var stamp = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// A file of a package. A name that ends in a slash is a folder.
type file struct {
	name string
	data []byte
	mode int64
}

// zipped packs files.
func zipped(files []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: stamp}
		h.SetMode(os.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

// tarred packs files that belong to root.
func tarred(files []file) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: stamp, Typeflag: tar.TypeReg, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := t.Close()
	return b.Bytes(), err
}

func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

func tarGz(files []file) ([]byte, error) {
	data, err := tarred(files)
	if err != nil {
		return nil, err
	}
	return gzipped(data)
}

// archive writes the bare command with its licences.
func (b *build) archive(out string) error {
	name := "ashlar-" + version.Text + "-" + b.name
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	files := []file{
		{name + "/" + b.file(), b.command, 0o755},
		{name + "/LICENSE", own, 0o644},
		{name + "/THIRD-PARTY.txt", b.parts.text, 0o644},
		{name + "/sbom.cdx.json", b.parts.sbom, 0o644},
	}
	pack, end := tarGz, ".tar.gz"
	if b.os == "windows" {
		pack, end = zipped, ".zip"
	}
	data, err := pack(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, name+end), data, 0o644)
}
