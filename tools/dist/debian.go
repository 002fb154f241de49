package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// debian writes a package: an ar archive of the format's version, a tar of what
// dpkg has to know, and a tar of the files (deb(5)).
func (b *build) debian(out string) error {
	const doc = "usr/share/doc/ashlar-mem/"
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	files := []file{{"usr/bin/ashlar", b.command, 0o755}}
	depends := fmt.Sprintf("libc6 (>= %d.%d)", b.glibc[0], b.glibc[1])
	if b.allocator != nil {
		files = append(files, file{"usr/lib/" + b.machineTag + "-linux-gnu/libashlar.so", b.allocator, 0o644})
		depends += ", libgcc-s1, libstdc++6"
	}
	files = append(files, file{doc + "copyright", append(append(own, '\n'), b.parts.text...), 0o644}, file{doc + "sbom.cdx.json", b.parts.sbom, 0o644})

	var md5sums bytes.Buffer
	size := 0
	for _, f := range files {
		fmt.Fprintf(&md5sums, "%x  %s\n", md5.Sum(f.data), f.name)
		size += len(f.data)
	}
	about := fmt.Sprintf(`Package: ashlar-mem
Version: %s
Architecture: %s
Maintainer: Ashlar <https://github.com/ashlar-mem/ashlar>
Installed-Size: %d
Depends: %s
Section: utils
Priority: optional
Homepage: https://github.com/ashlar-mem/ashlar
Description: explains the GPU memory of PyTorch programs
 Ashlar reads memory snapshots and out-of-memory messages, says why a job ran
 out of GPU memory, and tries other settings on the recorded run.
`, debianVersion(), b.deb, (size+1023)/1024, depends)

	control, err := tarGz([]file{{"./", nil, 0o755}, {"./control", []byte(about), 0o644}, {"./md5sums", md5sums.Bytes(), 0o644}})
	if err != nil {
		return err
	}
	data, err := tarGz(withFolders(files))
	if err != nil {
		return err
	}
	deb := ar([]file{{"debian-binary", []byte("2.0\n"), 0o100644}, {"control.tar.gz", control, 0o100644}, {"data.tar.gz", data, 0o100644}})
	return os.WriteFile(filepath.Join(out, "ashlar-mem_"+debianVersion()+"_"+b.deb+".deb"), deb, 0o644)
}

// withFolders puts ./ before the names, and folders before what is in them.
func withFolders(files []file) []file {
	packed := []file{{"./", nil, 0o755}}
	made := map[string]bool{}
	for _, f := range files {
		for i, c := range f.name {
			if dir := f.name[:i]; c == '/' && !made[dir] {
				made[dir] = true
				packed = append(packed, file{"./" + dir + "/", nil, 0o755})
			}
		}
		packed = append(packed, file{"./" + f.name, f.data, f.mode})
	}
	return packed
}

func ar(files []file) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, f := range files {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, stamp.Unix(), 0, 0, f.mode, len(f.data))
		b.Write(f.data)
		b.WriteString(strings.Repeat("\n", len(f.data)%2))
	}
	return b.Bytes()
}
