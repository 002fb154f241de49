package findings
type phases struct{}
func newPhases(a ...any) *phases {return nil}
