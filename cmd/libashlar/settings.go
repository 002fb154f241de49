package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// confVariable holds PyTorch's settings and ours. Without it PyTorch's own
// variables are read.
const confVariable = "ASHLAR_CONF"

// config is what the settings text says.
type config struct {
	engine settings.Settings
	own    ownSettings

	hold     bool   // the guarantees of tenants are held
	conf     string // the text
	variable string // where it stood; empty if nowhere
	notes    []string
}

// ownSettings are the keys that PyTorch does not have.
type ownSettings struct {
	frontCache  bool   // front_cache: the cache in C may hold blocks
	tiers       bool   // tiers: memory can be moved to the host
	overflow    uint64 // overflow: bytes of the host for requests that would fail; 0 for none
	hostLimit   uint64 // host_limit: bytes of the host that are taken at most; 0 for half of what it has
	regionPage  uint64 // region_page: bytes of a page of a region; 0 for regionPage
	history     int    // history: events to record from the start; 0 for none
	oomSnapshot string // oom_snapshot: where to write a snapshot at the first out-of-memory error
}

// keys reads them.
func (o *ownSettings) keys() []settings.Key {
	return []settings.Key{
		{Name: "front_cache", Allowed: "True or False", Set: func(v string) bool {
			o.frontCache = v == "True"
			return v == "True" || v == "False"
		}},
		{Name: "tiers", Allowed: "True or False", Set: func(v string) bool {
			o.tiers = v == "True"
			return v == "True" || v == "False"
		}},
		{Name: "overflow", Allowed: "a size of host memory, such as 64GiB; 0 for none", Set: func(v string) bool {
			n, err := units.ParseMemory(v)
			o.overflow = n
			return err == nil
		}},
		{Name: "host_limit", Allowed: "a size of host memory, such as 64GiB; 0 for half of what is available", Set: func(v string) bool {
			n, err := units.ParseMemory(v)
			o.hostLimit = n
			return err == nil
		}},
		{Name: "region_page", Allowed: "a multiple of 2MiB from 12MiB to 1GiB, such as 20MiB; 0 for 120MiB", Set: func(v string) bool {
			n, err := units.ParseMemory(v)
			o.regionPage = n
			return err == nil && n%alloc.SmallSegment == 0 && (n == 0 || n >= 12<<20 && n <= 1<<30)
		}},
		{Name: "history", Allowed: "a whole number of events, 0 for none", Set: func(v string) bool {
			n, err := strconv.Atoi(v)
			o.history = n
			return err == nil && n >= 0
		}},
		{Name: "oom_snapshot", Allowed: "the path of a file, with %p for the process and %d for the device", Set: func(v string) bool {
			o.oomSnapshot = v
			return v != "" && v != "," && v != ":"
		}},
	}
}

// defaults are the settings without any text: PyTorch's, but with expandable
// segments.
func defaults() config {
	c := config{engine: settings.Default(), own: ownSettings{frontCache: true, tiers: true}}
	c.engine.ExpandableSegments = true
	return c
}

// readConfig reads the environment. lookup is os.LookupEnv or a stand-in.
func readConfig(lookup func(string) (string, bool)) (config, error) {
	c := defaults()
	hold, ok := lookup(holdVariable)
	c.hold = ok && hold == "1"
	if c.conf, ok = lookup(confVariable); ok {
		c.variable = confVariable
	} else {
		c.conf, c.variable = settings.FromEnv(lookup)
	}
	err := c.read(c.conf, false)
	if err != nil {
		err = fmt.Errorf("%s=%q: %w", c.variable, c.conf, err)
	}
	return c, err
}

// read reads a text over what is in force.
func (c *config) read(conf string, running bool) error {
	c.notes = nil
	keys := c.own.keys()
	if c.variable != confVariable && !running {
		// PyTorch has read this text too and has complained where it had to.
		for _, name := range settings.LaterKeys() {
			keys = append(keys, settings.Key{Name: name, Allowed: "anything", Set: func(string) bool {
				c.notes = append(c.notes, name+" has no effect here")
				return true
			}})
		}
	}
	before := c.engine
	var err error
	c.engine, err = c.engine.With(conf, running, keys...)
	c.note(before)
	return err
}

// note names the keys that were changed and mean nothing here.
func (c *config) note(before settings.Settings) {
	say := func(changed bool, text string) {
		if changed {
			c.notes = append(c.notes, text)
		}
	}
	say(c.engine.Backend != settings.Native, "backend:"+c.engine.Backend+" has no effect: the backend is this library")
	c.engine.Backend = settings.Native
	pinned := c.engine.PinnedUseBackgroundThreads != before.PinnedUseBackgroundThreads ||
		c.engine.PinnedUseHostRegister != before.PinnedUseHostRegister ||
		c.engine.PinnedNumRegisterThreads != before.PinnedNumRegisterThreads ||
		c.engine.PinnedReserveSegmentSize != before.PinnedReserveSegmentSize
	say(pinned && c.variable == confVariable,
		"pinned_* have no effect here: they concern page-locked host memory; set them in "+settings.Variable)
	none := c.withoutEffect()
	say(none != "", none)
}

// text writes the settings in force in canonical form.
func (c *config) text() string {
	var fields []string
	s := c.engine
	if !s.ExpandableSegments {
		fields = append(fields, "expandable_segments:False") // which is not our default
	}
	if t := s.String(); t != "" {
		fields = append(fields, t)
	}
	if !c.own.frontCache {
		fields = append(fields, "front_cache:False")
	}
	if !c.own.tiers {
		fields = append(fields, "tiers:False")
	}
	if c.own.overflow > 0 {
		fields = append(fields, "overflow:"+strconv.FormatUint(c.own.overflow, 10))
	}
	if c.own.hostLimit > 0 {
		fields = append(fields, "host_limit:"+strconv.FormatUint(c.own.hostLimit, 10))
	}
	if c.own.regionPage > 0 {
		fields = append(fields, "region_page:"+strconv.FormatUint(c.own.regionPage, 10))
	}
	if c.own.history > 0 {
		fields = append(fields, "history:"+strconv.Itoa(c.own.history))
	}
	if c.own.oomSnapshot != "" {
		fields = append(fields, "oom_snapshot:"+c.own.oomSnapshot)
	}
	return strings.Join(fields, ",")
}

// settingsJSON is the document of ashlar_settings_json.
type settingsJSON struct {
	Settings                   string     `json:"settings"`
	Given                      string     `json:"given"`    // as it stood in the environment, or was set last
	Variable                   string     `json:"variable"` // where it was read
	Notes                      []string   `json:"notes"`
	ExpandableSegments         bool       `json:"expandable_segments"`
	MaxSplitSizeBytes          int64      `json:"max_split_size_bytes"` // -1 for none
	MaxNonSplitRoundingBytes   uint64     `json:"max_non_split_rounding_bytes"`
	LargeSegmentSizeBytes      uint64     `json:"large_segment_size_bytes"`
	GarbageCollectionThreshold float64    `json:"garbage_collection_threshold"`
	RoundupPower2Divisions     [16]uint64 `json:"roundup_power2_divisions"`
	PerProcessMemoryFraction   float64    `json:"per_process_memory_fraction"`
	FrontCache                 bool       `json:"front_cache"`
	Tiers                      bool       `json:"tiers"`
	OverflowBytes              uint64     `json:"overflow_bytes"` // 0 also where it has no effect
	HostLimitBytes             uint64     `json:"host_limit_bytes"`
	RegionPageBytes            uint64     `json:"region_page_bytes"`
	History                    int        `json:"history"`
	OOMSnapshot                string     `json:"oom_snapshot"`
}

func (c *config) json() settingsJSON {
	s := c.engine
	return settingsJSON{
		Settings: c.text(), Given: c.conf, Variable: c.variable, Notes: append([]string{}, c.notes...),
		ExpandableSegments: s.ExpandableSegments, MaxSplitSizeBytes: int64(s.MaxSplitSize),
		MaxNonSplitRoundingBytes: s.MaxNonSplitRounding, LargeSegmentSizeBytes: s.LargeSegmentSize,
		GarbageCollectionThreshold: s.GarbageCollectionThreshold, RoundupPower2Divisions: s.RoundupPower2Divisions,
		PerProcessMemoryFraction: s.PerProcessMemoryFraction,
		FrontCache:               c.own.frontCache, Tiers: c.own.tiers, OverflowBytes: c.overflow(), HostLimitBytes: c.own.hostLimit,
		RegionPageBytes: cmp.Or(c.own.regionPage, regionPage), History: c.own.history, OOMSnapshot: c.own.oomSnapshot,
	}
}

// configured returns what is wrong with the settings.
func (l *library) configured() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

func (l *library) settingsJSON() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return "", l.failed
	}
	text, err := json.Marshal(l.cfg.json())
	return string(text), err
}

// entries is a number of events as C gives it; PyTorch says 2^63-1 for all.
func entries(n uint64) int {
	if n > 1<<40 {
		return 0
	}
	return int(n)
}
