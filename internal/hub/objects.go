package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// objectTime is how long a large object may take on its way.
const objectTime = 10 * time.Minute

// Objects are named byte strings of any length.
type Objects struct {
	hub   *Hub
	store jetstream.ObjectStore
}

// Object describes one of them.
type Object struct {
	Name  string
	Bytes uint64
	Time  time.Time
}

// Objects opens a store of objects, and makes it if it is not there.
func (h *Hub) Objects(ctx context.Context, name string, maxAge time.Duration) (*Objects, error) {
	o := &Objects{hub: h}
	err := h.try(ctx, func(ctx context.Context) (err error) {
		if o.store, err = h.js.ObjectStore(ctx, name); errors.Is(err, jetstream.ErrBucketNotFound) {
			o.store, err = h.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name, TTL: maxAge})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the store of %s cannot be opened: %w", name, err)
	}
	return o, nil
}

// Put stores an object. It is not tried again: what was read is gone.
func (o *Objects) Put(ctx context.Context, name string, r io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, objectTime)
	defer cancel()
	_, err := o.store.Put(ctx, jetstream.ObjectMeta{Name: name}, r)
	return err
}

// Get opens an object, or returns [ErrNone].
func (o *Objects) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := o.store.Get(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, ErrNone
	}
	return r, err
}

// List returns the objects, the oldest first.
func (o *Objects) List(ctx context.Context) ([]Object, error) {
	var all []Object
	err := o.hub.try(ctx, func(ctx context.Context) error {
		infos, err := o.store.List(ctx)
		if errors.Is(err, jetstream.ErrNoObjectsFound) {
			return nil
		}
		for _, i := range infos {
			all = append(all, Object{i.Name, i.Size, i.ModTime})
		}
		return err
	})
	slices.SortFunc(all, func(a, b Object) int { return a.Time.Compare(b.Time) })
	return all, err
}

// Delete removes an object.
func (o *Objects) Delete(ctx context.Context, name string) error {
	return o.hub.try(ctx, func(ctx context.Context) error { return o.store.Delete(ctx, name) })
}
