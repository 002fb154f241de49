package gpu

// Info is what the GPUs of this machine are doing.
type Info struct {
	DriverVersion *string  `json:"driver_version"` // as NVML reports it
	CUDAVersion   string   `json:"cuda_version"`   // the newest that the driver supports
	Devices       []Device `json:"devices"`
	Notes         []string `json:"notes"`
}

// Card is which device it is.
type Card struct {
	Index             int    `json:"index"` // as CUDA counts, after CUDA_VISIBLE_DEVICES
	Name              string `json:"name"`
	UUID              string `json:"uuid"`
	PCIBusID          string `json:"pci_bus_id"`
	ComputeCapability string `json:"compute_capability"`
	Multiprocessors   int    `json:"multiprocessors"`
	TotalBytes        uint64 `json:"total_bytes"` // as CUDA counts
}

// Device is one device and what it is doing. What cannot be known is nil.
type Device struct {
	Card
	Driver             *Memory   `json:"driver"` // as a program with a context sees it
	NVML               *Memory   `json:"nvml"`   // as nvidia-smi does
	GPUUtilisation     *float64  `json:"gpu_utilisation"`
	MemoryUtilisation  *float64  `json:"memory_utilisation"`
	ContextBytes       *uint64   `json:"context_bytes"`
	ContextNotMeasured *string   `json:"context_not_measured"` // why
	Processes          []Process `json:"processes"`
	Notes              []string  `json:"notes"`
}

// Memory is the memory of a device as somebody counts it.
type Memory struct {
	TotalBytes uint64 `json:"total_bytes"`
	FreeBytes  uint64 `json:"free_bytes"`
	UsedBytes  uint64 `json:"used_bytes"`
}

// Process is a process that holds memory on a device.
type Process struct {
	PID       int     `json:"pid"`
	Name      *string `json:"name"`
	UsedBytes *uint64 `json:"used_bytes"`
	Self      bool    `json:"self"`
}
