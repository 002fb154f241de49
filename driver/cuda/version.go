package cuda

import "unsafe"

// DriverVersion asks NVML for the version of NVIDIA's driver, such as
// 580.159.03.
func (l *Library) DriverVersion() (string, error) {
	const longest = 80 // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
	n := &l.nvml
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.start(); err != nil {
		return "", err
	}
	n.text = append(n.text[:0], make([]byte, longest+1)...)
	if err := n.do(nvmlDriverVersion, uintptr(unsafe.Pointer(unsafe.SliceData(n.text))), longest); err != nil {
		return "", err
	}
	return cString(unsafe.Pointer(unsafe.SliceData(n.text))), nil
}
