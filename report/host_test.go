package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/hostmem/run"
	"github.com/ashlar-mem/ashlar/hostmem/variant"
)

// hostService is a service of which glibc keeps all and jemalloc-bg little,
// mimalloc crashes, and tcmalloc is not there.
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
                          time       CPU        peak       final     retained     of  spread
                                    time                                       glibc  of final
  glibc                 1.50 s    2.00 s  260.00 MiB  260.50 MiB  +250.50 MiB   1.00  1.00 MiB
  jemalloc-bg           1.50 s    2.25 s  260.00 MiB   30.50 MiB   +20.50 MiB   0.12  1.00 MiB
  mimalloc           failed 2 times: it ended with signal segmentation fault:
                                     <oh>
  tcmalloc           left out: it needs libtcmalloc_minimal.so; apt-get install
                     libtcmalloc-minimal4

  Time is that of the load, CPU time that of the whole run. Memory is RSS,
  summed over all processes of the command. Final is the median while it was
  left alone; retained is final less what it held when it was ready. Figures are
  medians over the runs; the spread is from the least to the most.

Final and peak
  glibc              ##########################################################
  jemalloc-bg        #######...................................................
                     # final   . up to the peak of 260.00 MiB

Over time: glibc beside jemalloc-bg, a typical run of each
   260.00 MiB |                                #.................................
              |                            #####.................................
              |                           ######.................................
              |                       ##########.................................
              |                      ###########.................................
   130.00 MiB |                  ###############.................................
              |                #################.................................
              |               ##################.................................
              |           ######################.................................
              |          ########################################################
            0 |-start--|load--------------------|settle--------------------------
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
	if err := Host(&b, "serve <x>", hostService(t), Style{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hostText, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
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
