package answers_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
)

const (
	gib   = 1 << 30
	nowUS = int64(1_760_000_000_000_000)
	day   = 86_400_000_000
)

func pointer[T any](v T) *T { return &v }

// table is a small fleet: two runs of two ranks, one of which failed, and a file
// that was refused.
func table() []answers.Entry {
	entry := func(i int, run string, rank int64, reserved uint64, cause, trigger string) answers.Entry {
		return answers.Entry{
			Hash: fmt.Sprintf("%064d", i), File: fmt.Sprintf("r%d.pickle", i), Run: run, Rank: &rank, Commit: "abc", FirstSeenUS: nowUS,
			Tags: map[string]string{"team": run[:1]},
			Summary: answers.Summary{
				Kind: "snapshot", WrittenUS: pointer(nowUS - int64(i)*day), Cause: cause, Trigger: trigger,
				PeakReserved: &reserved, PeakAllocated: pointer(reserved / 2), Events: 10 * i,
			},
		}
	}
	return []answers.Entry{
		entry(1, "llama-8b", 0, 40*gib, "none", "none"),
		entry(2, "llama-8b", 1, 70*gib, "leak", "capacity"),
		entry(3, "vit", 0, 61*gib, "none", "none"),
		entry(4, "vit", 1, 10*gib, "none", "none"),
		{Hash: "5", File: "bad.pickle", Error: "no snapshot", FirstSeenUS: nowUS - 9*day},
	}
}

func query(t *testing.T, o answers.QueryOptions, entries []answers.Entry) *answers.QueryDocument {
	t.Helper()
	o.NowUS = nowUS
	q, err := answers.NewQuery(o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return q.Run(entries)
}

func TestWhere(t *testing.T) {
	for _, test := range []struct{ where, want string }{
		{"", "r1 r2 r3 r4 bad"},
		{`run =~ "llama.*" and peak_reserved_bytes > 60GiB`, "r2"},
		{`run =~ 'll'`, ""},
		{`run !~ "llama.*"`, "r3 r4 bad"},
		{`peak_reserved_bytes > 60GiB`, "r2 r3"},
		{`peak_reserved_bytes >= 40 GiB`, "!"},
		{`peak_reserved_bytes >= "40 GiB"`, "r1 r2 r3"},
		{`not peak_reserved_bytes > 60GiB`, "r1 r4 bad"},
		{`peak_reserved_bytes <= 60GiB`, "r1 r4"},
		{`failed`, "r2"},
		{`not failed and error = ""`, "r1 r3 r4"},
		{`failed = false AND rank == 0`, "r1 r3"},
		{`cause = leak or (run = vit and rank != 0)`, "r2 r4"},
		{`cause = leak or run = vit and rank != 0`, "r2 r4"},
		{`(cause = leak or run = vit) and rank != 0`, "r2 r4"},
		{`age < 3d`, "r1 r2"},
		{`age < 36h`, "r1"},
		{`written_us >= 2025-10-07`, "r1 r2"},
		{`first_seen_us < 2025-10-02`, "bad"},
		{`tag.team = v`, "r3 r4"},
		{`tag.nobody = ""`, "r1 r2 r3 r4 bad"},
		{`error =~ ".*snapshot"`, "bad"},
		{`attempt = 0`, ""},
		{`attempt != 0`, ""},
		{`not (not (rank=1))`, "r2 r4"},
	} {
		if test.want == "!" {
			if _, err := answers.NewQuery(answers.QueryOptions{Where: test.where}); err == nil {
				t.Errorf("%s is taken", test.where)
			}
			continue
		}
		d := query(t, answers.QueryOptions{Where: test.where, Show: "file", Sort: "file"}, table())
		var got []string
		for i := range d.Rows.Len() {
			got = append(got, strings.TrimSuffix(d.Rows.Row(i)[0].Text, ".pickle"))
		}
		want := strings.Fields(test.want)
		if n := len(want); n > 0 && want[n-1] == "bad" { // it sorts first
			want = append([]string{"bad"}, want[:n-1]...)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || d.Matched != len(want) {
			t.Errorf("%s: %v, want %v", test.where, got, want)
		}
	}
}

func TestBadQueries(t *testing.T) {
	for _, test := range []struct {
		o    answers.QueryOptions
		want string
	}{
		{answers.QueryOptions{Where: "peak_reserved > 1GiB"}, `--where: character 1: there is no column "peak_reserved" (did you mean peak_reserved_bytes?); there are hash, file`},
		{answers.QueryOptions{Where: `run = a and filee = "b"`}, `--where: character 13: there is no column "filee" (did you mean file?)`},
		{answers.QueryOptions{Where: `run = "a`}, "--where: character 7: the quoted text has no end"},
		{answers.QueryOptions{Where: `run`}, "--where: character 4: run is to be compared with something"},
		{answers.QueryOptions{Where: `run =`}, "--where: character 6: what run is compared with is missing"},
		{answers.QueryOptions{Where: `run = a b`}, `--where: character 9: "b" is too much`},
		{answers.QueryOptions{Where: `(failed`}, "--where: character 1: the parenthesis is not closed"},
		{answers.QueryOptions{Where: `failed)`}, `--where: character 7: ")" is too much`},
		{answers.QueryOptions{Where: `run =~ "("`}, "--where: character 8: no regular expression: missing closing ): `(`"},
		{answers.QueryOptions{Where: `rank =~ "1"`}, "--where: character 6: =~ matches texts, and rank is none"},
		{answers.QueryOptions{Where: `rank = x`}, `--where: character 8: "x" is no value of rank: write a whole number`},
		{answers.QueryOptions{Where: `peak_reserved_bytes > 60GX`}, `--where: character 23: size "60GX": unknown unit "GX"`},
		{answers.QueryOptions{Where: `age < soon`}, `--where: character 7: "soon" is no value of a duration: write 30m, 12h, 7d or 2w`},
		{answers.QueryOptions{Where: `failed = perhaps`}, `write true or false`},
		{answers.QueryOptions{Where: `& failed`}, `--where: character 1: there is no column "&"`},
		{answers.QueryOptions{Where: `~ failed`}, `--where: character 1: "~" is no part of an expression`},
		{answers.QueryOptions{Where: strings.Repeat("(", 100_000)}, "nested too deeply"},
		{answers.QueryOptions{Where: strings.Repeat("not ", 100_000)}, "nested too deeply"},
		{answers.QueryOptions{Show: "run,nothing"}, `--show: name 2: there is no column "nothing"`},
		{answers.QueryOptions{Show: "count"}, "--show: name 1: count needs --group-by"},
		{answers.QueryOptions{Show: "run,run"}, "--show: name 2: run is there twice: leave one out"},
		{answers.QueryOptions{GroupBy: "runs"}, `--group-by: name 1: there is no column "runs" (did you mean run?)`},
		{answers.QueryOptions{GroupBy: "run", Show: "rank"}, "--show: name 1: rank is not one of --group-by, so a group has several: write max(rank)"},
		{answers.QueryOptions{GroupBy: "run", Show: "best(rank)"}, `there is no function "best"; there are avg, distinct, max, median, min, sum`},
		{answers.QueryOptions{GroupBy: "run", Show: "sum(cause)"}, "cause is a text, of which there is no sum"},
		{answers.QueryOptions{Sort: "rank2"}, `--sort: name 1: there is no column "rank2" (did you mean rank?)`},
		{answers.QueryOptions{Limit: -1}, "--limit is negative"},
	} {
		_, err := answers.NewQuery(test.o)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60v: %v, want %s", test.o, err, test.want)
		}
	}
}

func TestGroups(t *testing.T) {
	d := query(t, answers.QueryOptions{
		Where: `error = ""`, GroupBy: "run",
		Show: "run,count,sum(failed),max(peak_reserved_bytes),min(rank),avg(events),median(rank),distinct(cause)", Sort: "-max(peak_reserved_bytes)",
	}, table())
	got, err := json.Marshal(d.Rows)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`[{"run":"llama-8b","count":2,"sum(failed)":1,"max(peak_reserved_bytes)":%d,"min(rank)":0,"avg(events)":15,"median(rank)":0,"distinct(cause)":2},`+
		`{"run":"vit","count":2,"sum(failed)":0,"max(peak_reserved_bytes)":%d,"min(rank)":0,"avg(events)":35,"median(rank)":0,"distinct(cause)":1}]`, 70*gib, 61*gib)
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	d = query(t, answers.QueryOptions{GroupBy: "run,failed"}, table())
	if names := fmt.Sprint(d.Columns); d.Total != 4 || len(d.Columns) != 6 {
		t.Errorf("%d groups, columns %s", d.Total, names)
	}
}

func TestRows(t *testing.T) {
	d := query(t, answers.QueryOptions{Show: "file,run,rank,peak_reserved_bytes,failed", Sort: "-peak_reserved_bytes", Limit: 5}, table())
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if last := d.Rows.Row(4); last[0].Text != "bad.pickle" || last[1].Known || last[3].Known {
		t.Errorf("what is not known comes first: %+v", last)
	}
	var back answers.QueryDocument
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&back)
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("%v: %s\nread back: %s", err, data, again)
	}
	var file bytes.Buffer
	if err := d.WriteParquet(&file); err != nil || !bytes.HasPrefix(file.Bytes(), []byte("PAR1")) || !bytes.HasSuffix(file.Bytes(), []byte("PAR1")) {
		t.Errorf("%v, %d bytes", err, file.Len())
	}
	if d = query(t, answers.QueryOptions{Show: "file", Sort: "-peak_reserved_bytes"}, table()); d.Rows.Row(0)[0].Text != "r2.pickle" || len(d.Columns) != 1 {
		t.Errorf("sorted by what is not shown: %+v", d)
	}
	if d = query(t, answers.QueryOptions{Show: answers.AllColumns}, table()); len(d.Columns) != len(answers.Columns) {
		t.Errorf("%d columns are shown", len(d.Columns))
	}
	if d = query(t, answers.QueryOptions{Limit: 2}, table()); d.Rows.Len() != 2 || d.Total != 5 || d.Matched != 5 {
		t.Errorf("%d of %d rows, %d files", d.Rows.Len(), d.Total, d.Matched)
	}
}

// BenchmarkQuery is the bar of a hundred thousand files.
func BenchmarkQuery(b *testing.B) {
	entries := make([]answers.Entry, 100_000)
	for i := range entries {
		entries[i] = table()[i%4]
		entries[i].Hash = fmt.Sprintf("%064d", i)
		entries[i].Run = fmt.Sprintf("run-%d", i%500)
	}
	for _, o := range []answers.QueryOptions{
		{},
		{Where: `run =~ "run-1.*" and peak_reserved_bytes > 60GiB`},
		{GroupBy: "run,commit", Sort: "-count"},
	} {
		b.Run(o.Where+o.GroupBy, func(b *testing.B) {
			for b.Loop() {
				q, err := answers.NewQuery(o)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(q.Run(entries)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParquet is the bar of a table of all their columns.
func BenchmarkParquet(b *testing.B) {
	entries := make([]answers.Entry, 100_000)
	for i := range entries {
		entries[i] = table()[i%4]
		entries[i].Hash = fmt.Sprintf("%x", sha256.Sum256([]byte(strconv.Itoa(i))))
		entries[i].File = fmt.Sprintf("/shared/run-%d/rank%d.pickle", i%500, i)
		entries[i].FirstSeenUS = nowUS + int64(i)*1234567
	}
	for b.Loop() {
		q, err := answers.NewQuery(answers.QueryOptions{Show: answers.AllColumns, NowUS: nowUS})
		if err != nil {
			b.Fatal(err)
		}
		if err := q.Run(entries).WriteParquet(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// A document that is written row by row is the same.
func TestWriteJSON(t *testing.T) {
	q, err := answers.NewQuery(answers.QueryOptions{Show: answers.AllColumns, NowUS: nowUS})
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range []int{0, 1, 5000} {
		entries := make([]answers.Entry, rows)
		for i := range entries {
			entries[i] = answers.Entry{Hash: fmt.Sprint(i), Run: `"rows":[]`}
		}
		d := q.Run(entries)
		d.Notes = []string{`"rows":[]`}
		want, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := d.WriteJSON(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d rows: %d bytes, want %d, %v", rows, got.Len(), len(want), err)
		}
	}
}
