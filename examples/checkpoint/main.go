package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/save"
)

var folder = flag.String("o", "", "the folder for checkpoints; a temporary one if empty")

func main() {
	flag.Parse()
	if *folder == "" {
		var err error
		if *folder, err = os.MkdirTemp("", "checkpoints"); err != nil {
			log.Fatal(err)
		}
		log.Println("the checkpoints are in", *folder)
	}
	if err := run(os.Stdout, open()); err != nil {
		log.Fatal(err)
	}
}

const (
	layers    = 4
	layerSize = 8 << 20
	steps     = 6
	every     = 2
)

func run(w io.Writer, dev driver.Copier) error {
	a := alloc.New(dev)
	compute, err := dev.NewStream()
	if err != nil {
		return err
	}
	saver, err := save.New(dev, save.Options{Chunk: 4 << 20})
	if err != nil {
		return err
	}
	defer saver.Close()

	weights := make([]save.Item, layers)
	for i := range weights {
		addr, err := a.Malloc(layerSize, compute)
		if err != nil {
			return err
		}
		weights[i] = save.Item{Name: fmt.Sprintf("layer.%d", i), Addr: addr, Size: layerSize, DType: "F32", Shape: []int64{layerSize / 4}}
	}

	saves := map[string]*save.Pending{}
	for step := 1; step <= steps; step++ {
		// The training: real programs launch kernels here.
		for _, x := range weights {
			if err := dev.Fill(x.Addr, byte(step), x.Size, compute); err != nil {
				return err
			}
		}
		if step%every != 0 {
			continue
		}
		path := filepath.Join(*folder, fmt.Sprintf("step-%d.safetensors", step))
		p, err := saver.Save(context.Background(), path, weights, compute)
		if err != nil {
			return err
		}
		// The next step changes the weights. The device must not begin it before
		// they were copied; the program goes on.
		if err := p.Fence(compute); err != nil {
			return err
		}
		saves[path] = p
	}

	for path, p := range saves {
		if err := p.Wait(); err != nil { // a full disk would show here
			return err
		}
		if err := check(path); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%d steps done, %d checkpoints written and checked\n", steps, len(saves))
	return errors.Join(saver.Close(), dev.Synchronize(compute), dev.CloseStream(compute))
}

// check compares the data of a file with what its step wrote.
func check(path string) error {
	var step byte
	if _, err := fmt.Sscanf(filepath.Base(path), "step-%d.safetensors", &step); err != nil {
		return err
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, b := range file[len(file)-layers*layerSize:] {
		if b != step {
			return fmt.Errorf("%s: byte %d is of step %d", path, i, b)
		}
	}
	return nil
}

// open returns the first GPU, or host memory on a machine without one.
func open() driver.Copier {
	lib, err := cuda.Open()
	if err == nil {
		var gpu *cuda.Device
		if gpu, err = lib.Device(0); err == nil {
			log.Println("memory of", gpu.Info().Name)
			return gpu
		}
	}
	log.Println("no GPU is used:", err)
	return host.New(host.Config{Memory: 8 << 30})
}
