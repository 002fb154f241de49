package tune

import "github.com/ashlar-mem/ashlar/internal/answer"

// Document is what ashlar tune --json prints.
type Document struct {
	answer.Subject
	*Answer
}

// NewDocument says what an answer is about.
func NewDocument(s answer.Subject, a *Answer) *Document { return &Document{s, a} }
