package settings_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/settings"
)

func ExampleSettings_With() {
	color := ""
	key := settings.Key{Name: "color", Allowed: "red or blue", Set: func(v string) bool {
		color = v
		return v == "red" || v == "blue"
	}}
	s, err := settings.Default().With("color:red,max_split_size_mb:64", false, key)
	fmt.Println(s, color, err)
	_, err = settings.Default().With("color:green", false, key)
	fmt.Println(err)
	// Output:
	// max_split_size_mb:64 red <nil>
	// allocator setting "color": "green" is not allowed; allowed: red or blue
}

// TestWith: further keys follow the grammar, and an unknown key names them.
func TestWith(t *testing.T) {
	seen := []string{}
	key := settings.Key{Name: "name", Allowed: "anything", Set: func(v string) bool {
		seen = append(seen, v)
		return true
	}}
	for conf, want := range map[string]string{
		"name:x,expandable_segments:True": "",
		" name : y ,":                     "",
		"name":                            `"name": the text ends where a value should stand`,
		"nam:x":                           "per_process_memory_fraction, name",
	} {
		_, err := settings.Default().With(conf, false, key)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", conf, err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("values %q", seen)
	}
	base := settings.Default()
	base.ExpandableSegments = true
	if s, err := base.With("max_split_size_mb:64", false); err != nil || !s.ExpandableSegments {
		t.Errorf("%v, %v: what the text does not name must stay", s, err)
	}
}
