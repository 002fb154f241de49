package stats_test

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

func ExampleParse() {
	log := "[rank1]: stats of cuda:1 OrderedDict([('active.all.peak', 820),\n" +
		"[rank1]:              ('allocated_bytes.all.current', 9293004800), ('num_ooms', 1)])\n"
	d, err := stats.Parse([]byte(log))
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Source, d.Device, d.Exact, d.Values["allocated_bytes.all.current"], len(d.Missing))
	// Output:
	// python 1 true 9293004800 119
}

func ExampleParseAll_summary() {
	table := "|                  PyTorch CUDA memory summary, device ID 0                 |\n" +
		"| Allocated memory      |   8862 MiB |   8862 MiB |  42773 MiB |  33910 MiB |\n"
	all, err := stats.ParseAll([]byte(table))
	if err != nil {
		panic(err)
	}
	r := all[0].Ranges["allocated_bytes.all.current"]
	fmt.Println(all[0].Source, all[0].Exact, r.Low, r.High)
	// Output:
	// summary false 9292480512 9293529087
}
