package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder writes files, by name, into a folder of the test's own. A file that ends
// in .safetensors gets one tensor of two fp16 numbers.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, weightsEnd) {
			const header = `{"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`
			text = string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}) + header + "\x00\x00\x00\x00"
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpenModel(t *testing.T) {
	dir := folder(t, map[string]string{configName: `{"architectures":["MyModel"],"quantization_config":{"bits":4}}`, "model.safetensors": ""})
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &c.Parts[0]
	if c.Pipeline || len(c.Parts) != 1 || c.Class != "MyModel" || !p.Known() || !p.Quantised() || len(p.Tensors) != 1 || p.Tensors[0].DType != "F16" {
		t.Errorf("%+v", c)
	}
	if Stands(dir) {
		t.Error("a folder with a config of transformers is said to stand without one")
	}
	if !Stands(filepath.Join(dir, "model.safetensors")) {
		t.Error("a safetensors file does not stand by itself")
	}
}

// TestOpenIndex: files that are not there, and damaged ones, leave the size in their index; of damaged ones it is told why.
func TestOpenIndex(t *testing.T) {
	const index = "model.safetensors.index.json"
	for _, x := range []struct{ index, shard, damaged string }{
		{`{"metadata":{"total_size":4},"weight_map":{"w":"one.safetensors"}}`, "", ""},
		{`{"metadata":{"total_size":4},"weight_map":{"w":"one.safetensors"}}`, "version https://git-lfs.github.com/spec/v1", "git lfs pull"},
		{`{"metadata":{"total_size":4},"weight_map":{"w":"one.safetensors"}}`, "\x10\x00", "cut off"},
		{`{"metadata":{"total_size":4},"weight_map":{"w":"../one.safetensors"}}`, "", "not the name of a file beside the index"},
		{`{"metadata":{"total_size":4},"weight_map":[]}`, "", "not an object"},
	} {
		dir := folder(t, map[string]string{configName: `{"model_type":"odd"}`, index: x.index})
		if x.shard != "" {
			if err := os.WriteFile(filepath.Join(dir, "one.safetensors"), []byte(x.shard), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		c, err := Open(dir)
		if err != nil {
			t.Errorf("%s %q: %v", x.index, x.shard, err)
			continue
		}
		p := &c.Parts[0]
		if p.Bytes != 4 || p.Damaged == nil != (x.damaged == "") || p.Damaged != nil && !strings.Contains(p.Damaged.Error(), x.damaged) {
			t.Errorf("%s %q: %+v", x.index, x.shard, p)
		}
	}
}

func TestOpenPipeline(t *testing.T) {
	dir := folder(t, map[string]string{
		pipelineIndex: `{"_class_name":"MyPipeline","unet":["diffusers","UNet2DConditionModel"],"scheduler":["diffusers","DDIMScheduler"],` +
			`"vae":["diffusers","AutoencoderKL"],"../outside":["diffusers","UNet2DConditionModel"]}`,
		"unet/config.json":          `{"_class_name":"UNet2DConditionModel"}`,
		"unet/w.safetensors":        "",
		"vae/config.json":           `{"_class_name":"AutoencoderKL"}`,
		"scheduler/scheduler.json":  `{}`,
		"tokenizer/vocabulary.json": `{}`,
	})
	for _, path := range []string{dir, filepath.Join(dir, pipelineIndex)} {
		c, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Pipeline || c.Class != "MyPipeline" || len(c.Parts) != 2 || !Stands(path) {
			t.Fatalf("%s: %+v", path, c)
		}
		unet, vae := &c.Parts[0], &c.Parts[1]
		if unet.Name != "unet" || !unet.Denoiser || !unet.Known() {
			t.Errorf("unet: %+v", unet)
		}
		if vae.Name != "vae" || vae.Denoiser || vae.Known() {
			t.Errorf("vae: %+v", vae)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for what, path := range map[string]string{
		"no such file":             filepath.Join(t.TempDir(), "nothing"),
		"an empty folder":          t.TempDir(),
		"a config that is no JSON": filepath.Join(folder(t, map[string]string{configName: "{"}), configName),
		"a pipeline that is none":  folder(t, map[string]string{pipelineIndex: "[]"}),
	} {
		if c, err := Open(path); err == nil {
			t.Errorf("%s: %+v", what, c)
		} else if !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: the error does not name the file: %v", what, err)
		}
	}
}
