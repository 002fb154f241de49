package cards_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/units"
)

func TestTable(t *testing.T) {
	seen := map[string]string{}
	for _, c := range cards.List() {
		if c.TotalBytes < 4<<30 || c.TotalBytes > 400<<30 {
			t.Errorf("%s: total %s", c.Name, units.Size(c.TotalBytes))
		}
		if c.Major < 7 || c.Major > 12 || c.Minor < 0 || c.Minor > 9 {
			t.Errorf("%s: compute capability %d.%d", c.Name, c.Major, c.Minor)
		}
		if c.BandwidthBytes < 100e9 || c.BandwidthBytes > 20e12 {
			t.Errorf("%s: bandwidth %d", c.Name, c.BandwidthBytes)
		}
		if c.OutsideBytes < c.ContextBytes || c.ContextBytes == 0 || c.AvailableBytes() >= c.TotalBytes {
			t.Errorf("%s: context %d, outside %d", c.Name, c.ContextBytes, c.OutsideBytes)
		}
		if gib := float64(c.TotalBytes) / (1 << 30); c.SoldGB == 0 || gib > float64(c.SoldGB) || gib < 0.9*float64(c.SoldGB) {
			t.Errorf("%s: %.2f GiB, sold with %d GB", c.Name, gib, c.SoldGB)
		}
		if c.TotalSource == "" || c.ContextSource == "" || c.Date == "" || c.Title == "" {
			t.Errorf("%s: a source, date or title is missing: %+v", c.Name, c)
		}
		if (c.Total == cards.Estimate) != strings.HasPrefix(c.TotalSource, "estimate: ") {
			t.Errorf("%s: the total is %s, its source %q", c.Name, c.Total, c.TotalSource)
		}
		for _, k := range []cards.Kind{c.Total, c.Context} {
			if k != cards.Measured && k != cards.Reported && k != cards.Estimate {
				t.Errorf("%s: kind %q", c.Name, k)
			}
		}
		for _, name := range append([]string{c.Name, c.Title}, c.Aliases...) {
			got, ok := cards.Find(name)
			if !ok || got.Name != c.Name {
				t.Errorf("%q finds %q, want %q", name, got.Name, c.Name)
			}
			if other, twice := seen[name]; twice && other != c.Name {
				t.Errorf("%q names %s and %s", name, other, c.Name)
			}
			seen[name] = c.Name
		}
	}
	for _, name := range strings.Fields(`h200 h100 h100-pcie h100-nvl h20 b200 gh200 a100-40 a100-80 a800 a10 a10g a40 a6000 rtx6000ada
		mi50-16 mi100 mi210 mi250x mi300a mi300x mi325x mi355x 7900xtx 7900xt w7900 w7800 max1550 max1100 a770 b580
		l4 l40 l40s t4 v100-16 v100-32 3060 3070 3080 3090 4070 4080 4090 5090 rtx-pro-6000`) {
		if _, ok := cards.Find(name); !ok {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestMeasured pins the figures that were measured.
func TestMeasured(t *testing.T) {
	c, ok := cards.Find("h200")
	if !ok || c.TotalBytes != 150109880320 || c.ContextBytes != 619<<20 || c.OutsideBytes != 749<<20 || c.Context != cards.Measured {
		t.Errorf("%+v", c)
	}
	last := uint64(0)
	for _, x := range []struct {
		ranks    int
		exchange bool
		want     uint64
	}{{1, false, 512 << 20}, {2, false, 544 << 20}, {3, false, 688 << 20}, {8, false, 688 << 20}, {8, true, 688<<20 + 7*468571428}, {64, true, 688<<20 + 7*468571428}} {
		n, most, source := cards.NCCL(x.ranks, x.exchange)
		if n != x.want || most < n || n < last || source == "" {
			t.Errorf("NCCL of %d ranks, exchange %v: %d to %d, %q", x.ranks, x.exchange, n, most, source)
		}
		last = n
	}
}

func TestWorkspace(t *testing.T) {
	for name, want := range map[string]uint64{"h200": 32 << 20, "h20": 32 << 20, "a100-80": 8519680, "l40s": 8519680, "b200": 8519680, "5090": 8519680} {
		if c, _ := cards.Find(name); c.WorkspaceBytes() != want {
			t.Errorf("%s: %d, want %d", name, c.WorkspaceBytes(), want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"H100": "h100", "NVIDIA H100 80GB HBM3": "h100", " RTX 4090 ": "4090", "GeForce RTX 3090 Ti": "3090ti",
		"A100-SXM4-80GB": "a100-80", "a100-80gb": "a100-80", "L40S": "l40s", "rtx_pro_6000": "rtx-pro-6000",
		"a100 80GB": "a100-80", "L40S 48GB": "l40s", "rtx 3090 24gb": "3090", "RTX4090": "4090", "5090": "5090", "gb200": "gb200", "mi300x": "mi300x",
		"AMD Instinct MI300X": "mi300x", "l4": "l4", "t4": "t4", "a10g": "a10g", "b200": "b200", "RTX A6000": "a6000", "7900 XTX": "7900xtx", "AMD Radeon RX 7900 XTX": "7900xtx", "AMD Radeon PRO W7900": "w7900", "W7900": "w7900", "RX 7900 XT": "7900xt",
		"AMD Instinct MI100": "mi100", "mi350x": "mi355x", "Intel(R) Arc(TM) A770 Graphics": "a770", "Intel Arc A770": "a770", "Max 1550": "max1550", "Tesla T4": "t4",
		"H100 SXM5": "h100", "rtx 6000 ada": "rtx6000ada", "b300": "b300", "A30": "a30", "GeForce RTX 4060 Ti 16GB": "4060ti-16",
	} {
		if c, err := cards.Parse(text); err != nil || c.Name != want {
			t.Errorf("%q: %q, %v", text, c.Name, err)
		}
	}
	c, err := cards.Parse("80GiB")
	if err != nil || c.TotalBytes != 80<<30 || c.Total != cards.Given || c.Context != cards.Estimate || c.OutsideBytes != 749<<20 || c.Major != 9 {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"4091": "4090", "h10": "h100", "a100-60": "a100-40", "mi300y": "mi300x",
		"3050": "is not known", "": "is not known", "banana": "give its memory, such as 80GB, or one of h200", "13": "is not known",
	} {
		_, err := cards.Parse(text)
		var unknown *cards.UnknownError
		if !errors.As(err, &unknown) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"0GiB", "-5GiB", "0"} {
		if _, err := cards.Parse(text); err == nil || !strings.Contains(err.Error(), "must be more than nothing") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestSizes: a size in GB is a card as it is sold, one in GiB what the driver
// reports. Which is meant is said.
func TestSizes(t *testing.T) {
	for text, want := range map[string][2]string{
		"80GB":    {"h100-pcie", "the one with the least memory; for 80 GiB exactly write 80GiB"},
		"80 gb":   {"h100-pcie", "80 gb is the size that cards are sold with"},
		"24GB":    {"l4", "(l4, a10g, a10, a30,"},
		"24":      {"l4", "24 is the size"},
		"24G":     {"l4", "write 24GiB"},
		"16":      {"t4", "16 is the size"},
		"40GB":    {"a100-pcie-40", "(a100-pcie-40, a100-40)"},
		"48GB":    {"a40", "l40s"},
		"32GB":    {"rtx5000ada", "v100-32"},
		"141GB":   {"h200", "sold with (h200); for 141 GiB"},
		"192GB":   {"mi300x", "sold with (mi300x)"},
		"288GB":   {"b300", "gb300"},
		"a100":    {"a100-pcie-40", "sold in several sizes (a100-pcie-40, a100-40, a100-80)"},
		"A100":    {"a100-pcie-40", "A100 is sold"},
		"v100":    {"v100-16", "v100-32"},
		"rtx6000": {"quadro-rtx-6000", "rtx6000ada, rtx-pro-6000"},
		"4060ti":  {"4060ti-8", "4060ti-16"},
		"24GiB":   {"24GiB", "cards sold with 24 GB report 22.03 GiB to 23.98 GiB: write 24GB for them"},
		"80GiB":   {"80GiB", "80GiB is taken as what the driver reports"},
		"100GB":   {"100GB", "93.13 GiB; no card in the table is sold with that size"},
		"37GiB":   {"37GiB", "37GiB is taken as what the driver reports"},
	} {
		c, err := cards.Parse(text)
		if err != nil || c.Name != want[0] || !strings.Contains(c.Taken, want[1]) {
			t.Errorf("%q: %q, %q, %v; want %q", text, c.Name, c.Taken, err, want)
		}
	}
	if _, err := cards.Parse("8xH100"); err == nil || !strings.Contains(err.Error(), "write --gpu H100, and --shard ddp:8, fsdp:8 or zero3:8") {
		t.Error(err)
	}
	if c, _ := cards.Parse("h100"); c.Taken != "" {
		t.Errorf("h100 is one card: %q", c.Taken)
	}
}

// TestListIsACopy: a caller that changes what it got changes nothing else.
func TestListIsACopy(t *testing.T) {
	list := cards.List()
	list[0].Name, list[0].Aliases[0] = "x", "y"
	if again := cards.List(); again[0].Name == "x" || again[0].Aliases[0] == "y" {
		t.Error("the table was changed")
	}
}

func ExampleParse() {
	for _, text := range []string{"h200", "24GiB", "h300"} {
		c, err := cards.Parse(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s: %s in all, %s for PyTorch (context %s)\n", c.Title, units.Size(c.TotalBytes), units.Size(c.AvailableBytes()), c.Context)
	}
	// Output:
	// NVIDIA H200: 139.80 GiB in all, 139.07 GiB for PyTorch (context measured)
	// a GPU of 24.00 GiB: 24.00 GiB in all, 23.27 GiB for PyTorch (context estimate)
	// gpu "h300" is not known; did you mean h200, h100, h800, b300, h20? Or give its memory, such as 80GB
}
