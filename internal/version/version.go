package version

// Text is what --version prints. cmd/libashlar has it once more, in C, where a
// forked child may ask for it; a test there compares them.
const Text = "0.1.0-dev"
