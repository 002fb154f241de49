package replay_test

import (
	"context"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// BenchmarkRun replays real traces under other settings, on one core.
func BenchmarkRun(b *testing.B) {
	for _, name := range []string{"serve_generate", "gpt2_varlen", "llama_ckpt"} {
		file, err := snapshot.Open(context.Background(), "../../testdata/snapshots/"+name+"-default.pickle.gz", snapshot.Options{})
		if err != nil {
			b.Fatal(err)
		}
		p := programOf(b, file.Traces[0])
		for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4"} {
			s, err := settings.Parse(conf)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(name+"/"+conf, func(b *testing.B) {
				for b.Loop() {
					if _, err := p.Run(context.Background(), replay.Conditions{Settings: s}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(p.Check.Events)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
			})
		}
	}
}
