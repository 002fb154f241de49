package findings
type Leak struct{}
type Spike struct{}
type Transient struct{}
func (a *Analysis) Leaks() []Leak {return nil}
func (a *Analysis) Spikes() []Spike {return nil}
func (a *Analysis) Transient() *Transient {return nil}
type phases struct{}
func newPhases(a ...any) *phases {return nil}
