package fleet

import "os"

// temp is a file for the bytes of one of the fleet. Its path is good for this
// process and its children, until it is closed.
type temp struct {
	file *os.File
	path string
}

func newTemp() (*temp, error) {
	if file, path := nameless(os.TempDir()); file != nil {
		return &temp{file, path}, nil
	}
	file, err := os.CreateTemp("", "ashlar-fleet-")
	if err != nil {
		return nil, err
	}
	return &temp{file, withoutName(file)}, nil
}

func (t *temp) close() {
	t.file.Close()
	if t.path == t.file.Name() {
		os.Remove(t.path)
	}
}
