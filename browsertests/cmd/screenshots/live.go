package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/watch/watchtest"
)

// seconds is how long the recorded run of the picture takes there.
const seconds = 540

var livePicture = picture{
	"live", "", "#//live?job=train-py-rank00000&span=10m", "document.querySelector('.curve.lines')?.dataset.lines > 0 && document.querySelector('[data-snapshot]')",
	".live-head", "[data-panel=alarms]", 1240, 900,
}

// drawsLive draws a job: a recorded run that dies of fragmentation, sent to ashlar
// watch second by second as it was recorded, with its snapshot.
func drawsLive(b *page.Browser, ashlar, out string) error {
	const file = "../testdata/snapshots/gpt2_varlen-tight-default.pickle.gz"
	dir, err := os.MkdirTemp("", "ashlar-live")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sender := watchtest.NewSender(filepath.Join(dir, "w.sock"), "train.py", 0)
	if sender.Snapshot, err = os.ReadFile(file); err != nil {
		return err
	}
	if sender.Change, err = recorded(b, ashlar, file); err != nil {
		return err
	}
	alarms := filepath.Join(dir, "alarms")
	if err := os.WriteFile(alarms, []byte("headroom: headroom < 4GiB clear 5GiB for 5s -> log, snapshot\n"), 0o600); err != nil {
		return err
	}
	s, err := page.Watch(ashlar, "--no-nvml", "--dir", filepath.Join(dir, "store"), "--listen", "unix:"+filepath.Join(dir, "w.sock"), "--alarms", alarms)
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range seconds {
		sender.Sample(time.Now().Add(time.Duration(i-seconds) * time.Second))
	}
	ctx := context.Background()
	if err := sender.Flush(ctx); err != nil {
		return err
	}
	sender.Sample(time.Now()) // what was asked for is sent with it
	if err := sender.Send(ctx); err != nil {
		return err
	}
	for _, dark := range []bool{false, true} {
		if err := drawOne(b, s, livePicture, dark, out); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns what puts the totals of a recorded run into samples.
func recorded(b *page.Browser, ashlar, file string) (func(map[string]int64), error) {
	s, err := page.Serve(ashlar, file)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := b.Open(s.Address, 1240, 900, false)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if err := p.Until("document.querySelector('footer .where')", 20*time.Second); err != nil {
		return nil, err
	}
	var curve struct {
		Reserved  []int64 `json:"reserved_end"`
		Active    []int64 `json:"active"`
		Requested []int64 `json:"requested_end"`
	}
	var meta struct {
		Device int64 `json:"device_bytes"`
		Limit  struct {
			Max int64 `json:"max_bytes"`
		}
	}
	if err := p.Value("fetch('api/curve?run=1&x=time&n=540').then((r) => r.json())", &curve); err != nil {
		return nil, err
	}
	if err := p.Value("fetch('api/meta?run=1').then((r) => r.json())", &meta); err != nil {
		return nil, err
	}
	peak := map[string]int64{}
	return func(sample map[string]int64) {
		i := min(int(sample["seq"])-1, len(curve.Reserved)-1)
		sample["active"], sample["allocated"], sample["reserved"], sample["requested"] = curve.Active[i], curve.Active[i], curve.Reserved[i], curve.Requested[i]
		for _, name := range []string{"allocated", "reserved"} {
			peak[name] = max(peak[name], sample[name])
			sample["peak_"+name] = peak[name]
		}
		sample["limit"] = meta.Limit.Max
		if meta.Device > 0 {
			sample["device_total"] = meta.Device
		}
		for _, unknown := range []string{"inactive_split", "step", "step_us", "pinned", "host_rss", "num_alloc_retries"} {
			delete(sample, unknown)
		}
	}, nil
}
