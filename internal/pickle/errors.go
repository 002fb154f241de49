package pickle

import "fmt"

// Error is something wrong at a place in a file.
type Error struct {
	Offset int64
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("at byte %d: %v", e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// TruncatedError says that the file ended before its data did.
type TruncatedError struct {
	Offset int64 // bytes read
	Err    error // what the reader said, nil for a plain end
}

func (e *TruncatedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the file ends early, after %d bytes (%v)", e.Offset, e.Err)
	}
	return fmt.Sprintf("the file ends early, after %d bytes", e.Offset)
}

func (e *TruncatedError) Unwrap() error { return e.Err }

// ForbiddenError says that the file wants to import or call something.
type ForbiddenError struct {
	Offset int64
	Name   string // "os.system", or the opcode
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("refusing to load %s at byte %d: a snapshot needs no code; this file would run some in Python, find out where it comes from", e.Name, e.Offset)
}

// LimitError says that the file asks for more than is allowed.
type LimitError struct {
	What  string // "nesting"
	Limit int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s above the limit of %d: the file is damaged or made to do harm", e.What, e.Limit)
}
