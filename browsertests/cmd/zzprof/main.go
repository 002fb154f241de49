package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

func main() {
	s, err := page.Serve(os.Args[1], os.Args[2])
	if err != nil { panic(err) }
	defer s.Close()
	b, err := page.Launch(context.Background())
	if err != nil { panic(err) }
	defer b.Close()
	p, err := b.Open(s.Address+"#/1/timeline", 1600, 900, false)
	if err != nil { panic(err) }
	must := func(err error) { if err != nil { panic(err) } }
	must(p.Until("document.querySelector('.plot')?.dataset.drawn > 0", 30*time.Second))
	time.Sleep(2*time.Second)
	must(p.Value(`(() => { const pl = document.querySelector('.plot').plot; window.T=[]; const d = pl.draw.bind(pl); pl.frames.draw = () => { const t=performance.now(); d(); T.push(['draw', performance.now()-t, pl.feed.detail.rects]); };
	 })()`, nil))
	if len(os.Args) > 3 { must(p.Value(os.Args[3], nil)) }
	box, _ := p.Box(".plot")
	x, y := box[0]+box[2]*0.55, box[1]+box[3]*0.5
	for i := range 20 {
		must(p.Value("performance.clearMeasures('timeline'); performance.clearResourceTimings(); T.length=0", nil))
		by := -240.0
		if i > 11 { by = 300 }
		must(p.Wheel(x, y, by))
		must(p.Until("performance.getEntriesByName('timeline').length > 0 && !document.querySelector('.caption .spin')", 30*time.Second))
		var out string
		must(p.Value(`JSON.stringify({all: performance.getEntriesByName('timeline').map((e)=>Math.round(e.duration)), req: performance.getEntriesByType('resource').map((e)=>[e.name.replace(/.*api./,'').slice(0,9), Math.round(e.startTime-performance.getEntriesByName('timeline')[0].startTime), Math.round(e.duration), Math.round(e.responseStart-e.requestStart), e.transferSize]), T: T.map(t=>[t[0],Math.round(t[1]*10)/10,t[2]])})`, &out))
		fmt.Println(out)
	}
}
