package stats

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// collector gathers the dumps inside a literal.
type collector struct {
	source string
	dumps  []placed
	err    *failure
}

// placed is a dump and its offset in the text.
type placed struct {
	*Dump
	at int
}

// walk looks for dumps in v. path is the keys above it, device what a sibling
// of one of them said.
func (c *collector) walk(v value, path []string, device int) {
	if d, ok := pairs(v); ok && len(d.items) > 0 {
		v = d
	}
	switch {
	case v.kind == list:
		for i, item := range v.items {
			c.walk(item, append(path[:len(path):len(path)], "["+strconv.Itoa(i)+"]"), device)
		}
	case v.kind == dict && isStats(v):
		c.add(v, path, device)
	case v.kind == dict:
		device = deviceBeside(v, device)
		for i := 0; i < len(v.items); i += 2 {
			c.walk(v.items[i+1], append(path[:len(path):len(path)], v.items[i].text), device)
		}
	}
}

// isStats reports whether v is a dump itself, and not a dict of dumps: it has a key that
// no other dict would have, or two counters.
func isStats(v value) bool {
	few := 0
	for i := 0; i < len(v.items); i += 2 {
		key := baseName(v.items[i].text)
		switch {
		case family(key) && v.items[i+1].kind == dict:
			return true
		case known(key) && strings.Contains(key, "."):
			return true
		case known(key):
			few++
		}
	}
	return few >= 2
}

// baseName drops what loggers of metrics put before a key, "monitor/".
func baseName(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

func (c *collector) add(v value, path []string, device int) {
	d := newDump(c.source)
	d.Exact = true
	d.Label = strings.Join(path, "/")
	d.Device = deviceBeside(v, device)
	if d.Device < 0 {
		d.Device = deviceOf(path)
	}
	c.flatten(d, v, "")
	d.finish()
	c.dumps = append(c.dumps, placed{d, v.at})
}

func newDump(source string) *Dump {
	return &Dump{Device: -1, Values: map[string]int64{}, Ranges: map[string]units.Range{}, Extra: map[string]int64{}, Source: source}
}

// finish fills what follows from the values.
func (d *Dump) finish() {
	for _, key := range sortedKeys() {
		if _, ok := d.Values[key]; !ok {
			d.Missing = append(d.Missing, key)
		}
	}
}

// flatten takes the values of a dict, whose keys begin with above.
func (c *collector) flatten(d *Dump, v value, above string) {
	for i := 0; i < len(v.items); i += 2 {
		name, item := v.items[i].text, v.items[i+1]
		key := above + baseName(name)
		switch {
		case known(key) && item.kind == whole:
			d.Values[key] = item.whole
		case known(key):
			if c.err == nil {
				c.err = &failure{item.at, "the value of " + strconv.Quote(key) + " is not a whole number"}
			}
		case item.kind == dict && (family(key) || above != ""):
			c.flatten(d, item, key+".")
		default:
			if above == "" {
				key = name
			}
			if !slices.Contains(d.Unknown, key) && len(d.Unknown) < 1000 {
				d.Unknown = append(d.Unknown, key)
			}
			if item.kind == whole {
				d.Extra[key] = item.whole
			}
		}
	}
}

// deviceBeside returns the device that a key beside a dump names, else device.
func deviceBeside(v value, device int) int {
	for i := 0; i < len(v.items); i += 2 {
		switch strings.ToLower(v.items[i].text) {
		case "device", "device_id", "device_index", "gpu", "gpu_id", "cuda_device":
		default:
			continue
		}
		if item := v.items[i+1]; item.kind == whole && item.whole >= 0 && item.whole < maxDevices {
			return int(item.whole)
		} else if item.kind == text {
			if n := deviceOf([]string{item.text}); n >= 0 {
				return n
			}
		}
	}
	return device
}

const maxDevices = 1 << 16

var (
	deviceKey   = regexp.MustCompile(`(?i)^(?:cuda|gpu|device|dev)?[ :_=#-]*(\d{1,5})$`)
	deviceWords = regexp.MustCompile(`(?i)\b(?:cuda|gpu|device)(?: ?id)?[ :_=#]*(\d{1,5})\D*$`)
)

// deviceOf reads a device from the keys above a dump: "cuda:1", "gpu0", "3".
// Ranks are not devices.
func deviceOf(path []string) int {
	for _, key := range slices.Backward(path) {
		if strings.Contains(strings.ToLower(key), "rank") {
			return -1
		}
	}
	for _, key := range slices.Backward(path) {
		if m := deviceKey.FindStringSubmatch(key); m != nil {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	return -1
}
