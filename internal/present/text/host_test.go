package text

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/hostmem/run"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

// hostService returns a service of which glibc keeps all and jemalloc-bg
// little, mimalloc crashes, and tcmalloc is not there.
func hostService(t *testing.T) *run.Comparison {
	chosen, err := variant.Choose("jemalloc-bg,mimalloc")
	if err != nil {
		t.Fatal(err)
	}
	ready := []variant.Ready{{Variant: chosen[0]}, {Variant: chosen[1], Preload: "/lib/libjemalloc.so.2"}, {Variant: chosen[2], Preload: "/lib/libmimalloc.so.2"}}
	one := func(v string, cpu time.Duration, idle uint64) *run.Run {
		r := &run.Run{Variant: v, Verified: true, Settled: true, Peak: 260 << 20, CPU: cpu, Wall: 1500 * time.Millisecond}
		for i := range 40 {
			at := time.Duration(i) * 100 * time.Millisecond
			p := run.Point{At: at, Phase: run.Starting, RSSBytes: uint64(4+i) << 20}
			switch {
			case i >= 20:
				p.Phase, p.RSSBytes = run.Settling, idle<<20
			case i >= 5:
				p.Phase, p.RSSBytes = run.Driven, uint64(10+250*(i-5)/14)<<20
			}
			r.Points = append(r.Points, p)
		}
		return r
	}
	crash := &run.Run{Variant: "mimalloc", Verified: true, Err: "it ended with signal segmentation fault: <oh>", Exit: &run.Exit{Code: -1, Signal: "segmentation fault"}}
	c := run.Summarize(&run.Spec{Command: []string{"serve", "<x>"}, Ready: &run.Ready{Text: "up"}}, ready, [][]*run.Run{
		{one("glibc", 2*time.Second, 260), one("glibc", 2*time.Second, 261)},
		{one("jemalloc-bg", 2200*time.Millisecond, 30), one("jemalloc-bg", 2300*time.Millisecond, 31)},
		{crash, crash},
	}, 2)
	c.Missing = []variant.Missing{{Variant: "tcmalloc", Needs: "libtcmalloc_minimal.so", Install: "apt-get install libtcmalloc-minimal4"}}
	c.Notes = []string{"under glibc it ignored SIGTERM and was killed"}
	return c
}

const hostText = `serve <x>
  3 variants, 2 runs each, interleaved; the malloc of every run was looked up in
  its process
  note: under glibc it ignored SIGTERM and was killed

What it holds
                     time   CPU        peak       final    retained    of spread
                     in s  in s                                     glibc
  glibc              1.50  2.00  260.00 MiB  260.50 MiB +250.50 MiB  1.00  0.4 %
  jemalloc-bg        1.50  2.25  260.00 MiB   30.50 MiB  +20.50 MiB  0.12  3.3 %
  mimalloc          failed 2 times: it ended with signal segmentation fault:
                                    <oh>
  tcmalloc          left out: it needs libtcmalloc_minimal.so; apt-get install
                    libtcmalloc-minimal4

  Time is that of the load, CPU time that of the whole run. Memory is RSS,
  summed over all processes of the command. Final is the median while it was
  left alone; retained is final less what it held when it was ready. Figures are
  medians over the runs; the spread is how far apart the least and the most
  final memory are, of the median.

Final and peak
  glibc             ##########################################################
  jemalloc-bg       #######...................................................
                    # final   . up to the peak of 260.00 MiB

Over time: glibc beside jemalloc-bg, a typical run of each
   260.00 MiB |                               ##................................
              |                            #####................................
              |                          #######................................
              |                       ##########................................
              |                     ############................................
   130.00 MiB |                  ###############................................
              |                #################................................
              |               ##################................................
              |           ######################................................
              |          #######################################################
            0 |-start--|load--------------------|settle-------------------------
              # both   . only glibc   + only jemalloc-bg   (3.90 s in all)

Recommended
jemalloc-bg
  jemalloc-bg holds 30.50 MiB when it is idle, glibc 260.50 MiB: 230.00 MiB
  less. Its runs lie 1.00 MiB apart, those of glibc 1.00 MiB.
  it costs: CPU time +12 % (2.25 s, glibc 2.00 s); time +0 % (1.50 s, glibc
            1.50 s), within the spread.

  shell
    export LD_PRELOAD=/lib/libjemalloc.so.2
    export MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0

  Dockerfile
    RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/*
    ENV LD_PRELOAD=libjemalloc.so.2
    ENV MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0

  systemd, in [Service]
    Environment=LD_PRELOAD=/lib/libjemalloc.so.2
    Environment=MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0
`

func TestHost(t *testing.T) {
	var b bytes.Buffer
	if err := Host(&b, "serve <x>", hostService(t), Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hostText, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The figures fit into 80 columns, with the longest name and the largest numbers;
// lines to copy are as long as they are.
func TestHostWidth(t *testing.T) {
	c := hostService(t)
	r := &c.Results[1]
	r.Variant, r.WallS, r.CPUS, r.Ratio = "tcmalloc-decommit", new(99.994), new(12345.6), new(12.34)
	r.PeakRSS, r.FinalRSS, r.Retained = new(uint64(1<<30-1<<20)), new(uint64(1<<30-1<<20)), new(int64(999<<20))
	r.Spread.FinalRSS.High = 10 << 30
	var b bytes.Buffer
	if err := Host(&b, "serve", c, Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	figures, _, ok := strings.Cut(b.String(), "\nRecommended")
	row := "  tcmalloc-decommit 99.99 12346 1023.00 MiB 1023.00 MiB +999.00 MiB 12.34  998 %\n"
	if !ok || !strings.Contains(figures, row) {
		t.Errorf("no %q in:\n%s", row, figures)
	}
	for line := range strings.Lines(figures) {
		if n := width(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// Nothing is said about the malloc of runs that all failed.
func TestHostAllFailed(t *testing.T) {
	c := hostService(t)
	c.Results = c.Results[2:]
	var b bytes.Buffer
	if err := Host(&b, "serve", c, Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !c.Results[0].Verified || strings.Contains(text, "looked up") || !strings.Contains(text, "failed 2 times") {
		t.Errorf("verified %v\n%s", c.Results[0].Verified, text)
	}
}

// The drawing is well-formed and has a line for each variant that ran.
func TestHostSVG(t *testing.T) {
	var b bytes.Buffer
	if err := HostSVG(&b, "serve <x>", hostService(t)); err != nil {
		t.Fatal(err)
	}
	lines := 0
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	for _, part := range []string{"serve &lt;x&gt;", "<title>jemalloc-bg</title>", ">256.00 MiB<", ">3.5 s<"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %s", part)
		}
	}
	if lines != 2 {
		t.Errorf("%d lines", lines)
	}
}
