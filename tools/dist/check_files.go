package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// checkWheels compares every file of every wheel with the wheel's RECORD.
func checkWheels(out string) error {
	wheels, err := filepath.Glob(filepath.Join(out, "*.whl"))
	if err != nil {
		return err
	}
	for _, path := range wheels {
		if err := checkRecord(path); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	fmt.Printf("%d wheels: every file is as RECORD says\n", len(wheels))
	return nil
}

func checkRecord(path string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	files := map[string][]byte{}
	var record string
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if strings.HasSuffix(f.Name, ".dist-info/RECORD") {
			record = f.Name
		}
	}
	lines := strings.Split(strings.TrimSpace(string(files[record])), "\n")
	if len(lines) != len(files) {
		return fmt.Errorf("RECORD has %d lines for %d files", len(lines), len(files))
	}
	for _, line := range lines {
		words := strings.Split(line, ",")
		data, ok := files[words[0]]
		if !ok || len(words) != 3 {
			return fmt.Errorf("RECORD: %q names no file", line)
		}
		sum := sha256.Sum256(data)
		if words[0] != record && (words[1] != "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]) || words[2] != strconv.Itoa(len(data))) {
			return fmt.Errorf("RECORD: %q is not what the file is", line)
		}
	}
	return nil
}

func checkSums(out, work string) error {
	_, err := shell{env: os.Environ(), dir: out}.run("sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS")
	return err
}

// checkArchives unpacks the archives for this machine and starts the commands.
func checkArchives(out, work string) error {
	names, err := filepath.Glob(filepath.Join(out, "ashlar-*-"+runtime.GOOS+"-"+runtime.GOARCH+"*.tar.gz"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errors.New("there is no archive for this machine")
	}
	in := shell{env: []string{"PATH=/usr/bin:/bin"}, dir: work}
	for _, name := range names {
		if _, err := in.run("tar", "-xzf", name); err != nil {
			return err
		}
		command := filepath.Join(work, strings.TrimSuffix(filepath.Base(name), ".tar.gz"), "ashlar")
		if err := checkCommand(command); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		if strings.Contains(name, "-static") {
			if text, err := exec.Command(command, "gpu").CombinedOutput(); err == nil || !bytes.Contains(text, []byte("static build")) {
				return fmt.Errorf("%s: gpu does not say that this is the static build: %s", filepath.Base(name), text)
			}
		}
	}
	fmt.Printf("%d archives: unpacked and used\n", len(names))
	return nil
}

// checkCommand explains a real file.
func checkCommand(path string) error {
	text, err := exec.Command(path, "explain", "--limit", "7609MiB", sample).CombinedOutput()
	if err != nil || !bytes.Contains(text, []byte("fragmentation")) {
		return fmt.Errorf("explain %s: %w\n%.2000s", sample, err, text)
	}
	return nil
}

// checkDebian has dpkg unpack the package, or tells that there is no dpkg.
func checkDebian(out, work string) error {
	names, err := filepath.Glob(filepath.Join(out, "*_"+runtime.GOARCH+".deb"))
	if err != nil || len(names) != 1 {
		return fmt.Errorf("there are %d packages for this machine, not one: %w", len(names), err)
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		fmt.Println("Debian package: not tested, there is no dpkg-deb")
		return nil
	}
	root := filepath.Join(work, "debian")
	in := shell{env: os.Environ(), dir: work}
	text, err := in.run("dpkg-deb", "--field", names[0])
	if err != nil {
		return err
	}
	for _, want := range []string{"Package: ashlar-mem\n", "Version: " + debianVersion() + "\n", "Depends: libc6 (>= 2."} {
		if !strings.Contains(text, want) {
			return fmt.Errorf("%s has no %q:\n%s", names[0], want, text)
		}
	}
	if _, err := in.run("dpkg-deb", "--extract", names[0], root); err != nil {
		return err
	}
	if _, err := in.run("dpkg-deb", "--control", names[0], filepath.Join(root, "DEBIAN")); err != nil {
		return err
	}
	if _, err := (shell{env: os.Environ(), dir: root}).run("md5sum", "--check", "--quiet", "--strict", "DEBIAN/md5sums"); err != nil {
		return err
	}
	for _, name := range []string{"usr/share/doc/ashlar-mem/copyright", "usr/share/doc/ashlar-mem/sbom.cdx.json"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	if err := checkCommand(filepath.Join(root, "usr/bin/ashlar")); err != nil {
		return err
	}
	fmt.Println("Debian package: unpacked and used")
	return nil
}

// checkImage follows the digests from index.json down, and starts the command
// of this machine's image.
func checkImage(out, work string) error {
	names, err := filepath.Glob(filepath.Join(out, "*-oci.tar"))
	if err != nil || len(names) != 1 {
		return fmt.Errorf("there are %d images, not one: %w", len(names), err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		return err
	}
	files, err := untar(data)
	if err != nil {
		return err
	}
	used := 0
	blob := func(d descriptor, v any) error {
		data, ok := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if !ok || len(data) != d.Size || digest(data) != d.Digest {
			return fmt.Errorf("the blob %s is not there or not what its digest says", d.Digest)
		}
		used++
		if v == nil {
			return nil
		}
		return json.Unmarshal(data, v)
	}
	var top, all index
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		return fmt.Errorf("index.json: %d images: %w", len(top.Manifests), err)
	}
	if err := blob(top.Manifests[0], &all); err != nil {
		return err
	}
	for _, d := range all.Manifests {
		var m manifest
		if err := blob(d, &m); err != nil {
			return err
		}
		var config struct {
			Architecture string
			RootFS       struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		if err := blob(m.Config, &config); err != nil {
			return err
		}
		if err := blob(m.Layers[0], nil); err != nil {
			return err
		}
		plain, err := gunzip(files["blobs/sha256/"+strings.TrimPrefix(m.Layers[0].Digest, "sha256:")])
		if err != nil {
			return err
		}
		if !slices.Equal(config.RootFS.DiffIDs, []string{digest(plain)}) || config.Architecture != d.Platform.Architecture {
			return fmt.Errorf("the configuration of %s does not fit its layer", d.Platform.Architecture)
		}
		if config.Architecture != runtime.GOARCH {
			continue
		}
		root, err := untar(plain)
		if err != nil {
			return err
		}
		command := filepath.Join(work, "image-ashlar")
		if err := os.WriteFile(command, root["./usr/bin/ashlar"], 0o755); err != nil {
			return err
		}
		if err := checkCommand(command); err != nil {
			return err
		}
	}
	fmt.Printf("image: %d blobs are as their digests say; its command was used\n", used)
	return nil
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func untar(data []byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// checkReproducible makes everything once more and compares the sums.
func checkReproducible(out, work string) error {
	again := filepath.Join(work, "again")
	if err := makeAll(again, false); err != nil {
		return err
	}
	first, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		return err
	}
	second, err := os.ReadFile(filepath.Join(again, "SHA256SUMS"))
	if err != nil {
		return err
	}
	if !bytes.Equal(first, second) {
		return fmt.Errorf("a second build differs; if sources changed since the first, run make dist again:\n%s---\n%s", first, second)
	}
	fmt.Println("a second build has the same bytes")
	return nil
}
