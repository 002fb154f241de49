package page

import (
	"errors"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Paper is a size in inches.
type Paper struct{ Width, Height float64 }

// The sizes that people print on.
var (
	A4     = Paper{8.27, 11.69}
	Letter = Paper{8.5, 11}
)

// PDF prints the page as a person does who changes nothing. Only Chromium does.
func (p *Page) PDF(on Paper) ([]byte, error) {
	c, err := p.chromium()
	if err != nil {
		return nil, err
	}
	r, err := chromedp.Call(c.ctx, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: on.Width, PaperHeight: on.Height})
	if err != nil {
		return nil, err
	}
	return r.Data, nil
}

// OnPaper lays the page out as on paper, in a window of the given size. Only
// Chromium does.
func (p *Page) OnPaper(width, height int64) error {
	c, err := p.chromium()
	if err != nil {
		return err
	}
	if err := c.resize(width, height); err != nil {
		return err
	}
	_, err = chromedp.Call(c.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	return err
}

func (p *Page) chromium() (*chromium, error) {
	if c, ok := p.driver.(*chromium); ok {
		return c, nil
	}
	return nil, errors.New("Chromium alone does that")
}
