package page

import "github.com/chromedp/chromedp/kb"

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
	Tab    = kb.Tab

	remove = kb.Delete
)

// Press types keys: text, or the constants above.
func (p *Page) Press(keys string) error { return p.driver.press(keys, false) }

// PressShifted types keys with Shift held down.
func (p *Page) PressShifted(keys string) error { return p.driver.press(keys, true) }

// Type puts text into a field in place of what is there.
func (p *Page) Type(selector, text string) error {
	if err := p.Value("(() => { const e = document.querySelector("+Quote(selector)+"); e.focus(); e.select(); })()", nil); err != nil {
		return err
	}
	if text == "" {
		return p.Press(remove)
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

// Move moves the pointer.
func (p *Page) Move(x, y float64) error { return p.driver.mouse(false, mouseStep{x, y, moves}) }

// ClickAt clicks a point of the window.
func (p *Page) ClickAt(x, y float64) error {
	return p.driver.mouse(false, mouseStep{x, y, moves}, mouseStep{x, y, presses}, mouseStep{x, y, releases})
}

// Drag presses at one point and lets go at another, with the shift key or not.
func (p *Page) Drag(x0, y0, x1, y1 float64, shifted bool) error {
	steps := []mouseStep{{x0, y0, moves}, {x0, y0, presses}}
	for i := 1; i <= 4; i++ {
		part := float64(i) / 4
		steps = append(steps, mouseStep{x0 + (x1-x0)*part, y0 + (y1-y0)*part, drags})
	}
	return p.driver.mouse(shifted, append(steps, mouseStep{x1, y1, releases})...)
}

// Wheel turns the wheel at a point.
func (p *Page) Wheel(x, y, by float64) error { return p.driver.wheel(x, y, by) }
