package save_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/save"
)

// Saving a buffer while work on it goes on.
func Example() {
	dev := host.New(host.Config{Memory: 64 << 20})
	defer dev.Close()
	a := alloc.New(dev)
	s, err := save.New(dev, save.Options{Chunk: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	folder, err := os.MkdirTemp("", "save")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "step-1.safetensors")

	const size, stream = 2 << 20, 0
	weights, err := a.Malloc(size, stream)
	if err != nil {
		log.Fatal(err)
	}
	_ = dev.Fill(weights, 1, size, stream)
	p, err := s.Save(context.Background(), path, []save.Item{{Name: "weights", Addr: weights, Size: size, DType: "F32", Shape: []int64{512, 1024}}}, stream)
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Fence(stream); err != nil { // what follows comes after the copy
		log.Fatal(err)
	}
	_ = dev.Fill(weights, 2, size, stream)

	if err := p.Wait(); err != nil {
		log.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	header := file[8 : 8+binary.LittleEndian.Uint64(file)]
	fmt.Printf("%s\n", bytes.TrimSpace(header))
	fmt.Println("the last byte is", file[len(file)-1])
	// Output:
	// {"weights":{"dtype":"F32","shape":[512,1024],"data_offsets":[0,2097152]}}
	// the last byte is 1
}
