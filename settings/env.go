package settings

// Variables are the names of the environment variables that PyTorch looks at,
// in that order (spec 11.1).
var Variables = [...]string{"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}

// FromEnv returns the text that PyTorch would read and the variable it stands
// in: the first one that is set, even if it is empty. Both are empty if none is
// set. lookup is os.LookupEnv or a stand-in.
//
// On NVIDIA, PyTorch takes only the keys it shares with other devices from
// PYTORCH_HIP_ALLOC_CONF: those down to pinned_use_background_threads in the
// order of [Settings.String].
func FromEnv(lookup func(string) (string, bool)) (conf, variable string) {
	for _, name := range Variables {
		if conf, ok := lookup(name); ok {
			return conf, name
		}
	}
	return "", ""
}
