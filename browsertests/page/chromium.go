package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Chromium finds the browser; empty if there is none.
func Chromium() string {
	return found(os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
}

func found(names ...string) string {
	for _, name := range names {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Launch starts Chromium with software GL and nothing that calls home.
func Launch(ctx context.Context) (*Browser, error) {
	path := Chromium()
	if path == "" {
		return nil, errors.New("there is no chromium: apt-get install chromium, or set CHROMIUM")
	}
	o := []chromedp.ExecAllocatorOption{chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.ExecPath(path), chromedp.NoSandbox}
	for _, flag := range []string{
		"headless", "disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
		"enable-unsafe-swiftshader", "hide-scrollbars", "disable-extensions", "disable-default-apps", "disable-dev-shm-usage",
	} {
		o = append(o, chromedp.Flag(flag, true))
	}
	starter, stop := chromedp.NewExecAllocator(ctx, o...)
	tab, closeTab := chromedp.NewContext(starter)
	end := func() { closeTab(); stop() }
	if err := chromedp.Do(tab); err != nil {
		end()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return &Browser{
		pid:   chromedp.FromContext(tab).Browser.Process().Pid,
		open:  func(p *Page, w, h int64, dark bool) (driver, error) { return openChromium(tab, p, w, h, dark) },
		close: end,
	}, nil
}

// chromium drives a tab by the protocol of Chromium's developer tools.
// LaunchWarm starts Chromium and shows an empty page: a browser runs already when
// somebody works.
func LaunchWarm(ctx context.Context) (*Browser, error) {
	b, err := Launch(ctx)
	if err != nil {
		return nil, err
	}
	blank, err := b.Open("about:blank", 1600, 900, false)
	if err != nil {
		b.Close()
		return nil, err
	}
	blank.Close()
	return b, nil
}

type chromium struct {
	ctx context.Context
	end context.CancelFunc
}

func openChromium(browser context.Context, p *Page, width, height int64, dark bool) (driver, error) {
	ctx, closeTab := chromedp.NewContext(browser)
	c := &chromium{ctx, closeTab}
	go c.listen(p)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	err := c.resize(width, height)
	if err == nil {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
	}
	if slow := slowness(); err == nil && slow > 1 {
		_, err = chromedp.Call(ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: slow})
	}
	if err != nil {
		closeTab()
		return nil, err
	}
	return c, nil
}

func (c *chromium) listen(p *Page) {
	for m, err := range chromedp.Console(c.ctx) {
		if err != nil {
			return
		}
		if m.IsException() || m.Type == "error" || m.Type == "warning" {
			p.says(fmt.Sprintf("%s: %s (%s:%d:%d)", m.Type, m.Text, m.URL, m.Line, m.Column))
		}
	}
}

func (c *chromium) close() { c.end() }

func (c *chromium) do(steps ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(c.ctx, steps...)
}

func (c *chromium) navigate(address string) error { return c.do(chromedp.Navigate(address)) }

func (c *chromium) value(script string) ([]byte, error) {
	return chromedp.Run(c.ctx, chromedp.Evaluate[[]byte](script, chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
}

func (c *chromium) resize(width, height int64) error {
	return c.do(chromedp.EmulateViewport(width, height, chromedp.EmulateScale(sharpness())))
}

func (c *chromium) screenshot() ([]byte, error) {
	return chromedp.Run(c.ctx, chromedp.CaptureScreenshot())
}

func (c *chromium) press(keys string, shifted bool) error {
	if shifted {
		return c.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(chromedp.ModifierShift)))
	}
	return c.do(chromedp.KeyEvent(keys))
}

const shift = 8

func (c *chromium) mouse(shifted bool, steps ...mouseStep) error {
	for _, s := range steps {
		e := input.DispatchMouseEventParams{Type: chromedp.MouseMoved, X: s.x, Y: s.y}
		if s.does != moves {
			e.Button, e.Buttons, e.ClickCount = input.MouseButtonLeft, 1, 1
		}
		switch s.does {
		case presses:
			e.Type = chromedp.MousePressed
		case releases:
			e.Type, e.Buttons = chromedp.MouseReleased, 0
		}
		if shifted {
			e.Modifiers = shift
		}
		if _, err := chromedp.Call(c.ctx, input.DispatchMouseEvent, e); err != nil {
			return err
		}
	}
	return nil
}

func (c *chromium) wheel(x, y, by float64) error {
	// The protocol wants both deltas, and the library leaves out zeros.
	e := input.DispatchMouseEventParams{Type: chromedp.MouseWheel, X: x, Y: y, DeltaX: 1e-9, DeltaY: by}
	_, err := chromedp.Call(c.ctx, input.DispatchMouseEvent, e)
	return err
}
