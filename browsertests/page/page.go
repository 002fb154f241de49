package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A Page is a tab that shows ashlar view.
type Page struct {
	ctx   context.Context
	close context.CancelFunc

	mu       sync.Mutex
	problems []string
}

// Open makes a tab of a size and goes to an address. ASHLAR_SLOW=6 in the
// environment makes the page's scripts six times slower: what a test takes for
// granted while the page is still at it shows then.
func (b *Browser) Open(address string, width, height int64, dark bool) (*Page, error) {
	ctx, closeTab := chromedp.NewContext(b.ctx)
	p := &Page{ctx: ctx, close: closeTab}
	go p.listen(chromedp.Console(ctx))
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height))
	if err == nil {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
	}
	if slow, _ := strconv.ParseFloat(os.Getenv("ASHLAR_SLOW"), 64); err == nil && slow > 1 {
		_, err = chromedp.Call(ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: slow})
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate(address))
	}
	if err != nil {
		closeTab()
		return nil, err
	}
	return p, nil
}

// listen gathers what a developer would see in red or yellow.
func (p *Page) listen(messages func(yield func(chromedp.ConsoleMessage, error) bool)) {
	for m, err := range messages {
		if err != nil {
			return
		}
		if m.IsException() || m.Type == "error" || (m.Type == "warning" && !strings.Contains(m.Text, "GPU stall due to ReadPixels")) {
			p.mu.Lock()
			p.problems = append(p.problems, fmt.Sprintf("%s: %s (%s:%d:%d)", m.Type, m.Text, m.URL, m.Line, m.Column))
			p.mu.Unlock()
		}
	}
}

// Close closes the tab.
func (p *Page) Close() { p.close() }

// Problems are exceptions, errors and warnings of the console since the tab was
// opened.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.problems...)
}

// Do does steps of chromedp.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) error { return chromedp.Do(p.ctx, steps...) }

// Value evaluates JavaScript into v, which may be nil; a promise is waited for.
func (p *Page) Value(script string, v any) error {
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]byte](script, chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
	if err != nil || v == nil {
		return err
	}
	if err := json.Unmarshal(got, v); err != nil {
		return fmt.Errorf("%.200s gives %.200s: %w", script, got, err)
	}
	return nil
}

// Until waits until a condition in JavaScript holds.
func (p *Page) Until(condition string, within time.Duration) error {
	end := time.Now().Add(within)
	for {
		var ok bool
		if err := p.Value("!!("+condition+")", &ok); err != nil && !strings.Contains(err.Error(), "navigated") {
			return err
		}
		if ok {
			return nil
		}
		if time.Now().After(end) {
			var text string
			_ = p.Value("document.body.innerText.slice(0, 1500)", &text)
			return fmt.Errorf("not within %v: %s\nThe page says:\n%s\n%q", within, condition, text, p.Problems())
		}
		time.Sleep(15 * time.Millisecond)
	}
}

// Go changes what comes after # in the address.
func (p *Page) Go(hash string) error { return p.Value("void (location.hash = "+Quote(hash)+")", nil) }

// Text is the text of the first element that a selector finds.
func (p *Page) Text(selector string) (string, error) {
	var s string
	err := p.Value("document.querySelector("+Quote(selector)+")?.innerText ?? ''", &s)
	return s, err
}

// Box is where an element is: left, top, width, height.
func (p *Page) Box(selector string) (b [4]float64, err error) {
	var got []float64
	err = p.Value(`(() => {
		const e = document.querySelector(`+Quote(selector)+`);
		if (!e) return [];
		const r = e.getBoundingClientRect();
		return [r.left, r.top, r.width, r.height];
	})()`, &got)
	if err == nil && len(got) != 4 {
		err = fmt.Errorf("there is no %s", selector)
	}
	copy(b[:], got)
	return b, err
}

// Screenshot is the window as PNG.
func (p *Page) Screenshot() ([]byte, error) { return chromedp.Run(p.ctx, chromedp.CaptureScreenshot()) }

// Quote writes text as JavaScript has it.
func Quote(s string) string {
	b, _ := json.Marshal(s) // never fails for a string
	return string(b)
}
