package settings_test

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/settings"
)

func ExampleParse() {
	s, err := settings.Parse("expandable_segments:True, max_split_size_mb:128")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.MaxSplitSize, s.ExpandableSegments)
	fmt.Println(s)

	_, err = settings.Parse("max_split_size_mb:5")
	fmt.Println(err)
	// Output:
	// 134217728 true
	// max_split_size_mb:128,expandable_segments:True
	// allocator setting "max_split_size_mb": "5" is not allowed; allowed: a whole number of at least 20 (MiB, the large segment size)
}

func ExampleSettings_Apply() {
	s, _ := settings.Parse("max_split_size_mb:128,expandable_segments:True")
	s, _ = s.Apply("garbage_collection_threshold:0.8") // resets max_split_size_mb, keeps the rest
	fmt.Println(s)
	// Output:
	// garbage_collection_threshold:0.8,expandable_segments:True
}
