package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A Page is a tab that shows ashlar view.
type Page struct {
	driver driver

	mu       sync.Mutex
	problems []string
}

// Close closes the tab.
func (p *Page) Close() { p.driver.close() }

// Problems are exceptions, errors and warnings of the console since the tab was
// opened.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.problems...)
}

// Value evaluates JavaScript into v, which may be nil; a promise is waited for.
func (p *Page) Value(script string, v any) error {
	got, err := p.driver.value(script)
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

// Resize changes the window.
func (p *Page) Resize(width, height int64) error { return p.driver.resize(width, height) }

// Screenshot is the window as PNG.
func (p *Page) Screenshot() ([]byte, error) { return p.driver.screenshot() }

// Quote writes text as JavaScript has it.
func Quote(s string) string {
	b, _ := json.Marshal(s) // never fails for a string
	return string(b)
}
