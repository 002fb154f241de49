// Package device chooses where the memory of an example comes from: a GPU, the
// memory of this machine, or nowhere, for examples that look at numbers only.
package device

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// The drivers. Examples that copy bytes take the first two.
const (
	CUDA = "cuda"
	Host = "host"
	Sim  = "sim"
)

// Memory is what the host and the simulated device have. Examples limit
// themselves to less, so that they say the same on a large GPU.
const Memory = 8 << 30

// Main runs an example on the driver that the command line names, by default a
// GPU if there is one and host memory if not.
func Main(run func(w io.Writer, d driver.Driver) error, drivers ...string) {
	log.SetFlags(0)
	name := flag.String("driver", "", strings.Join(drivers, " or ")+"; without it a GPU if there is one, else host memory")
	flag.Parse()
	if *name != "" && !slices.Contains(drivers, *name) {
		log.Fatalf("-driver %s: this example runs on %s", *name, strings.Join(drivers, ", "))
	}
	if err := Run(os.Stdout, *name, run); err != nil {
		log.Fatal(err)
	}
}

// Run opens a device, says which, runs an example on it and closes it.
func Run(w io.Writer, name string, run func(w io.Writer, d driver.Driver) error) error {
	d, words, err := open(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "memory of %s\n", words)
	err = run(w, d)
	if c, ok := d.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

func open(name string) (d driver.Driver, words string, err error) {
	switch name {
	case Host:
		return host.New(host.Config{Memory: Memory}), "this machine, driver host", nil
	case Sim:
		return sim.New(sim.Config{TotalMemory: Memory}), "a simulated GPU, driver sim", nil
	case CUDA, "":
		d, words, err := openCUDA()
		if err != nil && name == "" {
			fmt.Fprintf(os.Stderr, "no GPU is used: %v\n", err)
			return open(Host)
		}
		return d, words, err
	}
	return nil, "", fmt.Errorf("there is no driver %q", name)
}

func openCUDA() (driver.Driver, string, error) {
	lib, err := cuda.Open()
	if err != nil {
		return nil, "", err
	}
	d, err := lib.Device(0)
	if err != nil {
		return nil, "", err
	}
	return d, fmt.Sprintf("%s, %s, driver cuda", d.Info().Name, units.Size(d.TotalMemory())), nil
}
