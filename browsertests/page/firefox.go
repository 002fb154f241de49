package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Firefox finds the browser; empty if there is none.
func Firefox() string { return found(os.Getenv("FIREFOX"), "firefox-esr", "firefox") }

// preferences keep Firefox from calling home and from asking things.
const preferences = `
user_pref("app.update.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.download.alwaysOpenPanel", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("extensions.getAddons.cache.enabled", false);
user_pref("layout.css.prefers-color-scheme.content-override", 1);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,");
user_pref("toolkit.telemetry.enabled", false);
`

// LaunchFirefox starts Firefox, which is driven by its own remote agent.
func LaunchFirefox(ctx context.Context) (*Browser, error) {
	path := Firefox()
	if path == "" {
		return nil, errors.New("there is no firefox: apt-get install firefox-esr, or set FIREFOX")
	}
	profile, err := os.MkdirTemp("", "firefox")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(preferences), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", profile)
	cmd.Env = append(os.Environ(), "HOME="+profile, "MOZ_CRASHREPORTER_DISABLE=1")
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := func() { // its profile goes too: there is nothing to save
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(profile)
	}
	b, err := connect(ctx, out)
	if err != nil {
		end()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return &Browser{
		pid:   cmd.Process.Pid,
		open:  func(p *Page, w, h int64, dark bool) (driver, error) { return openFirefox(b, p, w, h, dark) },
		close: end,
	}, nil
}

// connect waits for the address that Firefox prints and begins a session.
func connect(ctx context.Context, out io.Reader) (*bidi, error) {
	const sign = "WebDriver BiDi listening on "
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_, address, ok := strings.Cut(lines.Text(), sign)
		if !ok {
			said = append(said, lines.Text())
			continue
		}
		go func() { _, _ = io.Copy(io.Discard, out) }()
		b, err := dialBiDi(ctx, address+"/session")
		if err != nil {
			return nil, err
		}
		if err := b.call("session.new", object{"capabilities": object{}}, nil); err != nil {
			return nil, err
		}
		return b, b.call("session.subscribe", object{"events": []string{"log.entryAdded"}}, nil)
	}
	return nil, fmt.Errorf("it printed no address, but %q", said)
}

type object = map[string]any

// firefox drives a tab by WebDriver BiDi.
type firefox struct {
	bidi *bidi
	tab  string
	dark bool
}

func openFirefox(b *bidi, p *Page, width, height int64, dark bool) (driver, error) {
	var made struct {
		Context string `json:"context"`
	}
	if err := b.call("browsingContext.create", object{"type": "tab"}, &made); err != nil {
		return nil, err
	}
	f := &firefox{b, made.Context, dark}
	b.hear(f.tab, func(params json.RawMessage) {
		var m struct {
			Type, Level, Text string
			StackTrace        struct {
				CallFrames []struct {
					URL          string
					LineNumber   int
					ColumnNumber int
				}
			}
		}
		if err := json.Unmarshal(params, &m); err != nil || (m.Level != "error" && m.Level != "warn") {
			return
		}
		where := ""
		if at := m.StackTrace.CallFrames; len(at) > 0 {
			where = fmt.Sprintf(" (%s:%d:%d)", at[0].URL, at[0].LineNumber+1, at[0].ColumnNumber+1)
		}
		p.says(fmt.Sprintf("%s %s: %s%s", m.Type, m.Level, m.Text, where))
	})
	if err := f.resize(width, height); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *firefox) close() {
	f.bidi.hear(f.tab, nil)
	_ = f.bidi.call("browsingContext.close", object{"context": f.tab}, nil)
}

// navigate goes to an address. Firefox has one preference for all tabs, so the
// page's own key makes it light or dark.
func (f *firefox) navigate(address string) error {
	err := f.bidi.call("browsingContext.navigate", object{"context": f.tab, "url": address, "wait": "complete"}, nil)
	if err != nil {
		return err
	}
	want := map[bool]string{true: "dark", false: "light"}[f.dark]
	got, err := f.value("document.documentElement.dataset.theme ?? " + Quote(want))
	if err != nil || string(got) == Quote(want) {
		return err
	}
	return f.press("t", false)
}

func (f *firefox) value(script string) ([]byte, error) {
	var got struct {
		Type             string      `json:"type"`
		Result           remoteValue `json:"result"`
		ExceptionDetails struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	err := f.bidi.call("script.evaluate", object{
		"expression": script, "target": object{"context": f.tab}, "awaitPromise": true, "userActivation": true,
	}, &got)
	if err != nil {
		return nil, err
	}
	if got.Type == "exception" {
		return nil, fmt.Errorf("%.200s: %s", script, got.ExceptionDetails.Text)
	}
	v, err := got.Result.plain()
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func (f *firefox) resize(width, height int64) error {
	return f.bidi.call("browsingContext.setViewport", object{"context": f.tab, "viewport": object{"width": width, "height": height}}, nil)
}

func (f *firefox) screenshot() ([]byte, error) {
	var got struct {
		Data []byte `json:"data"`
	}
	err := f.bidi.call("browsingContext.captureScreenshot", object{"context": f.tab}, &got)
	return got.Data, err
}

// special are the keys that WebDriver has its own characters for.
var special = map[string]string{
	Enter: "\ue007", Escape: "\ue00c", Tab: "\ue004", remove: "\ue017", Home: "\ue011", End: "\ue010",
	Left: "\ue012", Up: "\ue013", Right: "\ue014", Down: "\ue015",
}

func (f *firefox) act(sources ...object) error {
	return f.bidi.call("input.performActions", object{"context": f.tab, "actions": sources}, nil)
}

func (f *firefox) press(keys string, shifted bool) error {
	var steps []object
	for _, r := range keys {
		key := string(r)
		if s, ok := special[key]; ok {
			key = s
		}
		steps = append(steps, object{"type": "keyDown", "value": key}, object{"type": "keyUp", "value": key})
	}
	return f.holding(shifted, object{"type": "key", "id": "keys", "actions": steps})
}

// holding acts with the shift key down, or not.
func (f *firefox) holding(shifted bool, source object) error {
	if !shifted {
		return f.act(source)
	}
	shift := func(does string) error {
		return f.act(object{"type": "key", "id": "shift", "actions": []object{{"type": does, "value": "\ue008"}}})
	}
	if err := shift("keyDown"); err != nil {
		return err
	}
	return errors.Join(f.act(source), shift("keyUp"))
}

func (f *firefox) mouse(shifted bool, steps ...mouseStep) error {
	var actions []object
	for _, s := range steps {
		switch s.does {
		case presses:
			actions = append(actions, object{"type": "pointerDown", "button": 0})
		case releases:
			actions = append(actions, object{"type": "pointerUp", "button": 0})
		default:
			actions = append(actions, object{"type": "pointerMove", "x": s.x, "y": s.y})
		}
	}
	return f.holding(shifted, object{"type": "pointer", "id": "mouse", "actions": actions})
}

func (f *firefox) wheel(x, y, by float64) error {
	scroll := object{"type": "scroll", "x": math.Round(x), "y": math.Round(y), "deltaX": 0, "deltaY": math.Round(by)}
	return f.act(object{"type": "wheel", "id": "wheel", "actions": []object{scroll}})
}
