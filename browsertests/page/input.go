package page

import (
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Keys that have no letter.
const (
	Enter  = kb.Enter
	Escape = kb.Escape
	Left   = kb.ArrowLeft
	Right  = kb.ArrowRight
	Up     = kb.ArrowUp
	Down   = kb.ArrowDown
	Home   = kb.Home
	End    = kb.End
)

// Press types keys: text, or the constants above.
func (p *Page) Press(keys string) error { return p.Do(chromedp.KeyEvent(keys)) }

// Type puts text into a field in place of what is there.
func (p *Page) Type(selector, text string) error {
	if err := p.Value("(() => { const e = document.querySelector("+Quote(selector)+"); e.focus(); e.select(); })()", nil); err != nil {
		return err
	}
	if text == "" {
		return p.Press(kb.Delete)
	}
	return p.Press(text)
}

// Pick chooses an entry of a list as a person does who knows its value.
func (p *Page) Pick(selector, value string) error {
	return p.Value("(() => { const e = document.querySelector("+Quote(selector)+"); e.value = "+Quote(value)+"; e.dispatchEvent(new Event('change', {bubbles: true})); })()", nil)
}

// Click clicks the middle of the first element that a selector finds.
func (p *Page) Click(selector string) error {
	b, err := p.Box(selector)
	if err != nil {
		return err
	}
	return p.ClickAt(b[0]+b[2]/2, b[1]+b[3]/2)
}

func (p *Page) mouse(e input.DispatchMouseEventParams) error {
	_, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, e)
	return err
}

// Move moves the pointer.
func (p *Page) Move(x, y float64) error {
	return p.mouse(input.DispatchMouseEventParams{Type: chromedp.MouseMoved, X: x, Y: y})
}

// ClickAt clicks a point of the window.
func (p *Page) ClickAt(x, y float64) error {
	if err := p.Move(x, y); err != nil {
		return err
	}
	return p.Do(chromedp.MouseClickXY(x, y))
}

const shift = 8

// Drag presses at one point and lets go at another, with the shift key or not.
func (p *Page) Drag(x0, y0, x1, y1 float64, shifted bool) error {
	e := input.DispatchMouseEventParams{Type: chromedp.MouseMoved, X: x0, Y: y0}
	if shifted {
		e.Modifiers = shift
	}
	if err := p.mouse(e); err != nil {
		return err
	}
	e.Button, e.Buttons, e.ClickCount, e.Type = input.MouseButtonLeft, 1, 1, chromedp.MousePressed
	if err := p.mouse(e); err != nil {
		return err
	}
	e.Type = chromedp.MouseMoved
	for i := 1; i <= 4; i++ {
		part := float64(i) / 4
		e.X, e.Y = x0+(x1-x0)*part, y0+(y1-y0)*part
		if err := p.mouse(e); err != nil {
			return err
		}
	}
	e.Type, e.Buttons = chromedp.MouseReleased, 0
	return p.mouse(e)
}

// Wheel turns the wheel at a point.
func (p *Page) Wheel(x, y, by float64) error {
	// The protocol wants both deltas, and the library leaves out zeros.
	return p.mouse(input.DispatchMouseEventParams{Type: chromedp.MouseWheel, X: x, Y: y, DeltaX: 1e-9, DeltaY: by})
}
