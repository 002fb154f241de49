package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// failedRank is what a rank leaves behind: a message with a time, or none.
type failedRank struct {
	verdict string
	line    int
	seconds int // 0: no time
}

// verdictOf explains ranks by what they leave behind.
func verdictOf(t *testing.T, ranks []failedRank) *Ranks {
	t.Helper()
	var files []string
	for i := range ranks {
		files = append(files, fmt.Sprintf("logs/rank%d.log", i))
	}
	s := NewRankSet(files)
	for i, rank := range ranks {
		c, r := NewCase(-1), newReport()
		r.Trigger, r.Cause = rank.verdict, rank.verdict
		if rank.verdict != None {
			c.Message = &message.OOM{Rank: i}
			if rank.seconds > 0 {
				c.Message.Time = time.Date(2026, 5, 1, 12, 0, rank.seconds, 0, time.UTC)
			}
			r.Line = &timeline.Frame{Filename: "/home/u/train.py", Line: int64(rank.line), Name: "main"}
		}
		if err := s.Add(t.Context(), files[i], c, r, json.RawMessage("{}")); err != nil {
			t.Fatal(err)
		}
	}
	return s.Verdict()
}

// The verdict over the ranks: who failed first, and whether for the same cause.
func TestRanks(t *testing.T) {
	for _, tt := range []struct {
		ranks []failedRank
		first int
		same  string
		want  string
	}{
		{
			[]failedRank{{Capacity, 39, 9}, {Capacity, 39, 5}, {Capacity, 39, 6}},
			1, "true", "All 3 files failed, rank1.log first: 1.00 s before rank2.log by the times in the logs. All failures are alike: capacity at train.py:39 main.",
		},
		{
			[]failedRank{{Capacity, 39, 9}, {None, 0, 0}, {Fragmentation, 40, 5}},
			2, "false", "2 of 3 files failed, rank2.log first: 4.00 s before rank0.log by the times in the logs. The failures differ: capacity at train.py:39 main (rank0.log); fragmentation at train.py:40 main (rank2.log).",
		},
		{[]failedRank{{None, 0, 0}, {Capacity, 39, 0}}, 1, "null", "1 of 2 files failed: rank1.log."},
		{[]failedRank{{Capacity, 39, 7}, {Capacity, 39, 0}}, -1, "true", "All 2 files failed; which one failed first is not known: their times are missing, or of different clocks. All failures are alike: capacity at train.py:39 main."},
		{[]failedRank{{Capacity, 39, 7}, {Capacity, 39, 7}}, 0, "true", "All 2 files failed, rank0.log and rank1.log first, at the same moment by the times in the logs. All failures are alike: capacity at train.py:39 main."},
		{[]failedRank{{None, 0, 0}, {None, 0, 0}}, -1, "null", "None of 2 files has a failed request."},
	} {
		v := verdictOf(t, tt.ranks)
		same, err := json.Marshal(v.SameCause)
		if err != nil {
			t.Fatal(err)
		}
		first := -1
		if v.First != nil {
			first = *v.First
		}
		if v.Summary != tt.want || first != tt.first || string(same) != tt.same {
			t.Errorf("first %d, same %s: %s", first, same, v.Summary)
		}
	}
}

// Snapshots that the recorder made of one process are a series.
func TestRanksOfOneProcess(t *testing.T) {
	pid, rank := int64(77), int64(0)
	v := &Ranks{}
	for i, live := range []uint64{300 << 20, 100 << 20, 200 << 20} { // in the order of their names
		v.Files = append(v.Files, RankEntry{pid: pid, Rank: &rank, live: &live, taken: int64([]int{3, 1, 2}[i])})
	}
	if v.series(); v.Trend == nil || v.Trend.Kind != Grows || v.Trend.PerDump != 100<<20 {
		t.Errorf("%+v", v.Trend)
	}
	v.Trend, v.Files[1].pid = nil, 78
	if v.series(); v.Trend != nil {
		t.Errorf("two processes: %+v", v.Trend)
	}
}

// Times are those of the events, else of the recorder, else of the log; peaks of
// a text are those of its dump, else what its message has.
func TestRankEntry(t *testing.T) {
	at, taken, live := int64(5_000_000), int64(6_000_000), uint64(7<<20)
	c, r := NewCase(-1), newReport()
	r.Trigger, r.Evidence.Live = Capacity, &live
	c.Facts = &recorder.Facts{TimeUS: &taken}
	c.Stats = stats.FromValues(0, map[string]int64{"reserved_bytes.all.peak": 9 << 20})
	s := NewRankSet([]string{"a", "b"})
	for range 2 {
		if err := s.Add(t.Context(), "a", c, r, nil); err != nil {
			t.Fatal(err)
		}
		r.Failure = &Failure{Moment: timeline.Moment{Time: &at}}
	}
	x, y := s.all[0], s.all[1]
	if *x.FailedAt != taken || *y.FailedAt != at || *x.PeakAllocated != live || *x.PeakReserved != 9<<20 || s.FailedFirst() != 1 {
		t.Errorf("%+v, %+v", x, y)
	}
	if v := s.Verdict(); !strings.Contains(v.Summary, "by the clocks of their hosts") {
		t.Error(v.Summary)
	}
}
