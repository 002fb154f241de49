package page

import (
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

// PDF prints the page as a person does who changes nothing.
func (p *Page) PDF(on Paper) ([]byte, error) {
	r, err := chromedp.Call(p.ctx, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: on.Width, PaperHeight: on.Height})
	if err != nil {
		return nil, err
	}
	return r.Data, nil
}

// OnPaper lays the page out as on paper, in a window of the given size.
func (p *Page) OnPaper(width, height int64) error {
	if err := p.Do(chromedp.EmulateViewport(width, height)); err != nil {
		return err
	}
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	return err
}

// Resize changes the window.
func (p *Page) Resize(width, height int64) error {
	return p.Do(chromedp.EmulateViewport(width, height))
}
