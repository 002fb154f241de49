package explain_test
import ("testing";"github.com/ashlar-mem/ashlar/internal/scenario";"github.com/ashlar-mem/ashlar/explain")
func TestZZ(t *testing.T){
	for _, part:=range []uint64{2,10}{
	s:=&story{name:"x",room:160*mib,request:asks(60*mib,0),setup:func(s *scenario.Scenario){pin(s,2,60,part,0)}}
	r,_:=s.tell(t,ways[0])
	dump(t,r)
	}
	s:=&story{name:"x",room:104*mib,request:asks(3*mib,0),setup:func(s *scenario.Scenario){held(s,1,100*mib)}}
	r,_:=s.tell(t,ways[1])
	dump(t,r)
}
func dump(t *testing.T,r *explain.Report){
	t.Log(r.Verdict,r.Confidence,r.Summary,r.Alternatives,text(r.BreakEven))
	for _,f:=range r.Fixes{t.Log("  ",f.Kind,f.Settings,text(f.SmallestLimit),text(f.Bytes),f.Detail)}
	for _,n:=range r.Notes{t.Log("  -",n)}
}
