package page

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Heap collects garbage, and returns how many bytes of JavaScript are left. Only
// Chromium does.
func (p *Page) Heap() (int64, error) {
	c, err := p.chromium()
	if err != nil {
		return 0, err
	}
	if _, err := chromedp.Call(c.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		return 0, err
	}
	used, err := chromedp.Call(c.ctx, runtime.GetHeapUsage, cdp.Empty{})
	return int64(used.UsedSize), err
}
