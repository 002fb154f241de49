//go:build !linux

package host

import "os"

// openMemory makes a file that nobody else sees.
func openMemory() (*os.File, error) {
	f, err := os.CreateTemp("", "ashlar-host-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where it cannot be removed while it is open it stays
	return f, nil
}

// punchFile would give memory back, for which there is no call: it stays in the file
// until the device is closed.
func punchFile(*os.File, int64, uint64) {}
