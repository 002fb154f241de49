package settings

// Key is a setting of a program that has the allocator in it. It is written
// among PyTorch's own and read by the same rules.
type Key struct {
	Name    string
	Allowed string // what values are allowed, in words
	// Set takes the value and reports whether it is allowed.
	Set func(value string) bool
}

// With returns what s becomes when a text with further keys is read. It starts
// from s as [Settings.Apply] does; running says whether the program has
// started, so that the backend cannot change any more.
func (s Settings) With(conf string, running bool, keys ...Key) (Settings, error) {
	p := parser{settings: s, tokens: tokenize(conf), running: running}
	for _, k := range keys {
		p.more = append(p.more, k.option())
	}
	err := p.parse()
	return p.settings, err
}

// lookup finds the option with that key or alias.
func (p *parser) lookup(name string) *option {
	for i := range p.more {
		if p.more[i].key == name {
			return &p.more[i]
		}
	}
	return lookup(name)
}

func (k Key) option() option {
	return option{
		key: k.Name, allowed: constant(k.Allowed),
		set: func(p *parser, f field) error {
			if !k.Set(p.tokens[f.at]) {
				return p.refuse(f, "")
			}
			return nil
		},
		format: func(Settings) string { return "" },
	}
}
