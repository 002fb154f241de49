package page

import (
	"os"
	"strconv"
	"strings"
)

// A Browser is a running browser without a window.
type Browser struct {
	pid   int
	open  func(p *Page, width, height int64, dark bool) (driver, error)
	close func()
}

// driver does in a tab what a person does, in the protocol of its browser.
type driver interface {
	navigate(address string) error
	value(script string) ([]byte, error) // the JSON of what a script gives
	press(keys string, shifted bool) error
	mouse(shifted bool, steps ...mouseStep) error
	wheel(x, y, by float64) error
	resize(width, height int64) error
	screenshot() ([]byte, error)
	close()
}

// mouseStep is where the pointer is, and what its button does there.
type mouseStep struct {
	x, y float64
	does mouseDoes
}

type mouseDoes int

const (
	moves mouseDoes = iota
	presses
	drags // moves with the button down
	releases
)

// Open makes a tab of a size and goes to an address. ASHLAR_SLOW=6 in the
// environment makes the page's scripts six times slower in Chromium: what a test
// takes for granted while the page is still at it shows then.
func (b *Browser) Open(address string, width, height int64, dark bool) (*Page, error) {
	p := &Page{}
	d, err := b.open(p, width, height, dark)
	if err != nil {
		return nil, err
	}
	p.driver = d
	if err := d.navigate(address); err != nil {
		d.close()
		return nil, err
	}
	return p, nil
}

// PID is the browser's process; the pages run in children of it.
func (b *Browser) PID() int { return b.pid }

// Close ends the browser.
func (b *Browser) Close() { b.close() }

func slowness() float64 {
	n, _ := strconv.ParseFloat(os.Getenv("ASHLAR_SLOW"), 64)
	return n
}

// sharpness is how many pixels of the device a pixel of the page has; 1 unless
// ASHLAR_SHARP says otherwise.
func sharpness() float64 {
	if n, err := strconv.ParseFloat(os.Getenv("ASHLAR_SHARP"), 64); err == nil && n >= 1 {
		return n
	}
	return 1
}

// says notes what a developer would see in red or yellow in the console.
func (p *Page) says(text string) {
	// Chromium says it of its own drawing in software.
	if strings.Contains(text, "GPU stall due to ReadPixels") {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, text)
}
