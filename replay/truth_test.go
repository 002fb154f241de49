package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func TestTruth(t *testing.T) {
	f, err := os.Open("/work/shared/data/measured.jsonl")
	if err != nil {
		t.Skip(err)
	}
	programs := map[string]*Program{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m map[string]any
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		if m["label"] == "async" {
			continue
		}
		name := m["name"].(string)
		p := programs[name]
		if p == nil {
			file, err := snapshot.Open(context.Background(), "../testdata/snapshots/"+name+"-default.pickle.gz", snapshot.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if p, err = CheckProgram(context.Background(), file.Traces[0]); err != nil {
				t.Fatal(err)
			}
			programs[name] = p
			t.Log(name, p.Check.Identical, p.Check.IdenticalEvents, p.Ignored, p.Len())
		}
		s, err := settings.Parse(m["conf"].(string))
		if err != nil {
			t.Fatal(err)
		}
		o, err := p.Run(context.Background(), Conditions{Settings: s, Limit: uint64(m["limit_mb"].(float64)) << 20})
		if err != nil {
			t.Errorf("%s %s: %v", name, m["label"], err)
			continue
		}
		want := m["reserved_bytes.all.peak"].(float64)
		verdict := "ok"
		if m["limit_mb"].(float64) == 0 {
			if d := float64(o.Reserved.Bytes)/want - 1; d > 0.01 || d < -0.01 {
				verdict = "WRONG"
			}
		} else if o.Fails != (m["num_ooms"].(float64) > 0) {
			verdict = "WRONG"
		}
		t.Logf("%-5s %-15s %-16s reserved %6d MiB measured %6d (%+.3f%%) fails %v ooms %v retries %d/%v mallocs %d/%v frees %d/%v %v", verdict, name, m["label"], o.Reserved.Bytes>>20, int(want)>>20,
			100*(float64(o.Reserved.Bytes)/want-1), o.Fails, m["num_ooms"], o.Retries, m["num_alloc_retries"], o.DeviceAllocs, m["num_device_alloc"], o.DeviceFrees, m["num_device_free"], o.DriverTime)
	}
}
