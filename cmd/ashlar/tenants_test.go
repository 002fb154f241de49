package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/tenants"
)

const (
	grows = "../../testdata/snapshots/leak_graph-default.pickle.gz"
	spike = "../../testdata/snapshots/ckpt_spike-default.pickle.gz"
)

func TestTenants(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := []string{
		"tenants", "--limit", "3GiB", "--tenant", "serve=" + spike + ",guarantee=1GiB,priority=10", "--tenant", "batch=" + grows + ",ceiling=2GiB",
		"--against", "shared,mig:h100",
	}
	if code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, args); code != exitOK || stderr.Len() > 0 {
		t.Fatalf("status %d: %s", code, &stderr)
	}
	for _, want := range []string{
		"serve: " + spike, "the model reproduces 13,708 of 13,708 recorded events", "1.00 GiB guaranteed, priority 10", "at most 2.00 GiB",
		"One engine for all", "1g.10gb",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &stdout)
		}
	}
	stdout.Reset()
	if code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, append(args, "--json")); code != exitOK {
		t.Fatalf("status %d: %s", code, &stderr)
	}
	var a tenants.Answer
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil || len(a.Tenants) != 2 || len(a.Arrangements) != 3 || a.Limit != 3<<30 {
		t.Errorf("%v: %s", err, &stdout)
	}
}

// What is wrong is said in one line.
func TestTenantsRefuses(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--limit 3GiB", "no tenant"},
		{"--tenant a=" + grows, "no limit"},
		{"--limit 3GiB --tenant a", "write NAME=FILE"},
		{"--limit 3GiB --tenant a=", "write NAME=FILE"},
		{"--limit 3GiB --tenant a=" + grows + ",guarantee=4GiB", "more than the limit"},
		{"--limit 3GiB --tenant a=" + grows + " --tenant a=" + grows, "two tenants a"},
		{"--limit 3GiB --tenant a=" + grows + ",guarante=1GiB", "did you mean guarantee?"},
		{"--limit 3GiB --tenant a=" + grows + ",ceiling=0B", "leave it out"},
		{"--limit 3GiB --tenant a=" + grows + ",repeat=0", "from 1 to 1000"},
		{"--limit 3GiB --tenant a=" + grows + ",priority=x", "no whole number"},
		{"--limit 3GiB --tenant a=" + grows + ",start=3s", "--clock time"},
		{"--limit 3GiB --clock time --tenant a=" + grows + ",start=3", "no time"},
		{"--limit 3GiB --tenant a=nosuch", "no such file"},
		{"--limit 3GiB --tenant a=../../testdata/variety/stateonly.pickle.gz", "no events"},
		{"--limit 3GiB --tenant a=" + grows + " --against mig:rtx-4090", "profiles are known of"},
		{"--limit 3GiB --tenant a=" + grows + " --against mig", "mig:h100"},
		{"--limit 3GiB --tenant a=" + grows + " --against mig:foo", "profiles are known of h200, h100"},
		{"--limit 3GiB --tenant a=" + grows + " --against mig:h100,mig:a100-40", "one mig:GPU"},
		{"--limit 3GiB --tenant a=" + grows + " --against none,shared", "none goes with no other"},
		{"--limit 3GiB --tenant a=" + grows + " --against shared,none", "none goes with no other"},
		{"--limit 3GiB --tenant a=" + grows + ",guarantee=1GiB,guarantee=2GiB", "guarantee is given twice"},
		{"--limit 3GiB --tenant a=" + grows + ",priority=99999999999999999999999", "too large"},
		{"--limit 3GiB --tenant a=" + grows + ",start=999999999999999999", "too large"},
		{"--limit 3GiB file", "--tenant NAME=FILE"},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, append([]string{"tenants"}, strings.Fields(tt.args)...))
		if code != exitInput || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%s: status %d, %q", tt.args, code, &stderr)
		}
	}
}
