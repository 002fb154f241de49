package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/internal/version"
)

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// A descriptor points to a blob (OCI image specification 1.1).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	Schema    int          `json:"schemaVersion"`
	MediaType string       `json:"mediaType"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

type index struct {
	Schema    int          `json:"schemaVersion"`
	MediaType string       `json:"mediaType"`
	Manifests []descriptor `json:"manifests"`
}

// A layout is an image as files, by their digests.
type layout struct{ files []file }

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

func (l *layout) blob(kind string, data []byte) descriptor {
	d := descriptor{MediaType: kind, Digest: digest(data), Size: len(data)}
	l.files = append(l.files, file{"blobs/sha256/" + d.Digest[len("sha256:"):], data, 0o644})
	return d
}

func (l *layout) document(kind string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.blob(kind, data), err
}

// image writes an OCI image layout, packed into one file, of the static
// commands for all processors. There is nothing else in it.
func image(out string, builds []*build) error {
	l := &layout{files: []file{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644}, {"blobs/", nil, 0o755}, {"blobs/sha256/", nil, 0o755}}}
	var images []descriptor
	for _, b := range builds {
		if !b.static {
			continue
		}
		d, err := l.platform(b)
		if err != nil {
			return err
		}
		images = append(images, d)
	}
	all, err := l.document(typeIndex, index{2, typeIndex, images})
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": version.Text}
	top, err := json.Marshal(index{2, typeIndex, []descriptor{all}})
	if err != nil {
		return err
	}
	data, err := tarred(append(l.files, file{"index.json", top, 0o644}))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "ashlar-"+version.Text+"-oci.tar"), data, 0o644)
}

// platform adds the image for one processor.
func (l *layout) platform(b *build) (descriptor, error) {
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return descriptor{}, err
	}
	files := withFolders([]file{
		{"usr/bin/ashlar", b.command, 0o755},
		{"usr/share/doc/ashlar/LICENSE", own, 0o644},
		{"usr/share/doc/ashlar/THIRD-PARTY.txt", b.parts.text, 0o644},
		{"usr/share/doc/ashlar/sbom.cdx.json", b.parts.sbom, 0o644},
	})
	// Commands keep temporary files there.
	plain, err := tarred(append(files, file{"./tmp/", nil, 0o1777}))
	if err != nil {
		return descriptor{}, err
	}
	packed, err := gzipped(plain)
	if err != nil {
		return descriptor{}, err
	}
	layer := l.blob(typeLayer, packed)
	config, err := l.document(typeConfig, map[string]any{
		"created":      stamp.Format(time.RFC3339),
		"architecture": b.arch,
		"os":           b.os,
		"config": map[string]any{
			"Entrypoint": []string{"/usr/bin/ashlar"},
			"WorkingDir": "/data",
			"Env":        []string{"PATH=/usr/bin"},
			"Labels":     map[string]string{"org.opencontainers.image.version": version.Text, "org.opencontainers.image.licenses": "Apache-2.0"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(plain)}},
	})
	if err != nil {
		return descriptor{}, err
	}
	d, err := l.document(typeManifest, manifest{2, typeManifest, config, []descriptor{layer}})
	d.Platform = &platform{b.arch, b.os}
	return d, err
}
