package page

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/chromedp/remote"
)

// bidi is a connection that speaks WebDriver BiDi.
type bidi struct {
	conn *remote.Conn
	raw  []byte // the last message, as it came

	mu      sync.Mutex
	next    int64
	waiting map[int64]chan reply
	lost    error
	events  map[string]func(json.RawMessage) // by browsing context
}

// reply is what BiDi answers, or an event.
type reply struct {
	ID      int64           `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
}

func dialBiDi(ctx context.Context, address string) (*bidi, error) {
	b := &bidi{waiting: map[int64]chan reply{}, events: map[string]func(json.RawMessage){}}
	// The connection knows the messages of Chromium, whose errors look otherwise.
	// So what came is read here, from what it would log.
	heard := func(format string, args ...any) {
		if data, ok := args[0].([]byte); ok && format == "<- %s" {
			b.raw = append([]byte{}, data...)
		}
	}
	conn, err := remote.DialContext(ctx, address, remote.WithConnDebugf(heard))
	if err != nil {
		return nil, err
	}
	b.conn = conn
	go b.listen()
	return b, nil
}

func (b *bidi) listen() {
	for {
		b.raw = nil
		err := b.conn.Read(context.Background(), new(cdproto.Message))
		if b.raw == nil {
			b.lose(err)
			return
		}
		var r reply
		if err := json.Unmarshal(b.raw, &r); err != nil {
			b.lose(err)
			return
		}
		b.mu.Lock()
		wait := b.waiting[r.ID]
		delete(b.waiting, r.ID)
		b.mu.Unlock()
		switch {
		case wait != nil:
			wait <- r
		case r.Method == "log.entryAdded":
			b.tell(r.Params)
		}
	}
}

// tell gives an event to the tab that it is of.
func (b *bidi) tell(params json.RawMessage) {
	var of struct {
		Source struct {
			Context string `json:"context"`
		} `json:"source"`
	}
	_ = json.Unmarshal(params, &of)
	b.mu.Lock()
	hears := b.events[of.Source.Context]
	b.mu.Unlock()
	if hears != nil {
		hears(params)
	}
}

func (b *bidi) hear(tab string, hears func(json.RawMessage)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if hears == nil {
		delete(b.events, tab)
	} else {
		b.events[tab] = hears
	}
}

func (b *bidi) lose(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = fmt.Errorf("the connection to Firefox is lost: %w", err)
	for _, wait := range b.waiting {
		close(wait)
	}
	b.waiting = nil
}

// call sends a command and reads its answer into result, which may be nil.
func (b *bidi) call(method string, params, result any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	wait := make(chan reply, 1)
	b.mu.Lock()
	if b.lost != nil {
		b.mu.Unlock()
		return b.lost
	}
	b.next++
	id := b.next
	b.waiting[id] = wait
	b.mu.Unlock()
	if err := b.conn.Write(context.Background(), &cdproto.Message{ID: id, Method: cdproto.MethodType(method), Params: data}); err != nil {
		return err
	}
	select {
	case r, ok := <-wait:
		if !ok {
			return b.lost
		}
		if r.Error != "" {
			return fmt.Errorf("%s: %s: %s", method, r.Error, r.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(r.Result, result)
	case <-time.After(time.Minute):
		return fmt.Errorf("%s: no answer within a minute", method)
	}
}
