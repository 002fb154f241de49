package units_test

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
)

func ExampleSize() {
	fmt.Println(units.Size(512), units.Size(20<<20), units.Size(3<<29))
	fmt.Println(units.Torch(1<<20), units.Delta(-1<<30), units.Count(18435))
	// Output:
	// 512 B 20.00 MiB 1.50 GiB
	// 1024.00 KiB -1.00 GiB 18,435
}

func ExampleParse() {
	for _, s := range []string{"80GiB", "80 gb", "1.5G", "4096", "a lot"} {
		fmt.Println(units.Parse(s))
	}
	// Output:
	// 85899345920 <nil>
	// 80000000000 <nil>
	// 1610612736 <nil>
	// 4096 <nil>
	// 0 size "a lot": it does not begin with a number; write for example 80GiB, 80GB (powers of ten), 512M, 1.5GiB or a number of bytes
}
