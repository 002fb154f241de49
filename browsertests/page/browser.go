package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// Chromium finds the browser; empty if there is none.
func Chromium() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// A Browser is a running Chromium without a window.
type Browser struct {
	ctx   context.Context
	close context.CancelFunc
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
	b := &Browser{ctx: tab, close: func() { closeTab(); stop() }}
	if err := chromedp.Do(tab); err != nil {
		b.close()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.close() }

// PID is the browser's process; the pages run in children of it.
func (b *Browser) PID() int { return chromedp.FromContext(b.ctx).Browser.Process().Pid }
