package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tier"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/settings"
)

func main() {
	if err := run(os.Stdout, open()); err != nil {
		log.Fatal(err)
	}
}

const mib = 1 << 20

// model is 40 MiB of weights in a space of their own.
type model struct {
	space   *tier.Space
	engine  *alloc.Allocator
	weights uint64
}

func run(w io.Writer, d driver.Copier) error {
	store, err := tier.New(d, tier.Options{Host: 200 * mib})
	if err != nil {
		return err
	}
	store.SetDeviceLimit(60 * mib)

	actor, err := newModel(store, "actor")
	if err != nil {
		return err
	}
	if err := actor.load(d, 1); err != nil {
		return err
	}
	critic, err := newModel(store, "critic")
	if err != nil {
		return err
	}
	var oom *alloc.OutOfMemoryError
	if err := critic.load(d, 2); !errors.As(err, &oom) {
		return fmt.Errorf("there is room for both: %w", err)
	}
	fmt.Fprintln(w, "critic: no room beside the actor")

	// Nobody uses the device here, so the actor may be parked.
	if _, err := actor.space.Park(true); err != nil {
		return err
	}
	if err := critic.load(d, 2); err != nil {
		return err
	}
	for range 2 {
		for _, turn := range []struct{ idle, busy *model }{{critic, actor}, {actor, critic}} {
			if err := swap(w, d, turn.idle, turn.busy); err != nil {
				return err
			}
		}
	}

	// A request that would fail goes to the host's memory: slow, but there.
	critic.space.SetOverflow(100 * mib)
	batch, err := critic.engine.Malloc(40*mib, 0)
	if err != nil {
		return err
	}
	device, far, _, _ := critic.space.Where(batch)
	fmt.Fprintf(w, "critic: 40 MiB more, %d MiB of it on the device and %d MiB on the host\n", device/mib, far/mib)
	return errors.Join(critic.engine.Free(batch), critic.engine.Free(critic.weights), actor.engine.Free(actor.weights))
}

func newModel(store *tier.Store, name string) (*model, error) {
	conf, err := settings.Parse("expandable_segments:True") // only their memory moves
	if err != nil {
		return nil, err
	}
	m := &model{space: store.Space(name)}
	m.engine = alloc.New(m.space.Driver(), alloc.WithSettings(conf))
	return m, m.space.Attach(m.engine)
}

// load allocates the weights and fills them.
func (m *model) load(d driver.Copier, value byte) (err error) {
	if m.weights, err = m.engine.Malloc(40*mib, 0); err != nil {
		return err
	}
	return errors.Join(d.Fill(m.weights, value, 40*mib, 0), d.Synchronize(0))
}

// swap parks one model and has the other one work.
func swap(w io.Writer, d driver.Copier, idle, busy *model) error {
	parked, err := idle.space.Park(true)
	if err != nil {
		return err
	}
	if _, err := busy.space.Restore(); err != nil {
		return err
	}
	var last [1]byte
	if err := errors.Join(d.CopyToHost(last[:], busy.weights+40*mib-1, 0), d.Synchronize(0)); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: parked, %d MiB; %s: works with weights of %d\n", idle.space.Name(), parked.Freed/mib, busy.space.Name(), last[0])
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
