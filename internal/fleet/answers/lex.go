package answers

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// token is a piece of an expression.
type token struct {
	kind tokenKind
	text string // of a quoted one what is inside
	at   int    // where it begins, in characters from 1
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenQuoted
	tokenOperator // a comparison or a parenthesis
)

// SyntaxError is an expression that cannot be read.
type SyntaxError struct {
	At   int // character from 1
	What string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("character %d: %s", e.At, e.What) }

func syntax(at int, format string, args ...any) error {
	return &SyntaxError{at, fmt.Sprintf(format, args...)}
}

// operators are all comparisons, longer ones before those that they begin with.
var operators = []string{"==", "!=", "=~", "!~", "<=", ">=", "=", "<", ">", "(", ")"}

// tokens splits an expression.
func tokens(text string) ([]token, error) {
	var out []token
	at := 1
	for rest := text; ; {
		trimmed := strings.TrimLeft(rest, " \t\r\n")
		at += utf8.RuneCountInString(rest[:len(rest)-len(trimmed)])
		if rest = trimmed; rest == "" {
			return append(out, token{tokenEnd, "", at}), nil
		}
		t, n, err := next(rest, at)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		at += utf8.RuneCountInString(rest[:n])
		rest = rest[n:]
	}
}

// next reads the token that a text begins with, and its length in bytes.
func next(text string, at int) (token, int, error) {
	for _, op := range operators {
		if strings.HasPrefix(text, op) {
			return token{tokenOperator, op, at}, len(op), nil
		}
	}
	if quote := text[0]; quote == '"' || quote == '\'' {
		var out strings.Builder
		for i := 1; i < len(text); i++ {
			switch c := text[i]; {
			case c == quote:
				return token{tokenQuoted, out.String(), at}, i + 1, nil
			case c == '\\' && i+1 < len(text) && text[i+1] == quote:
				out.WriteByte(quote)
				i++
			default:
				out.WriteByte(c)
			}
		}
		return token{}, 0, syntax(at, "the quoted text has no end")
	}
	n := strings.IndexAny(text, " \t\r\n\"'()=!<>~")
	if n < 0 {
		n = len(text)
	}
	if n == 0 {
		return token{}, 0, syntax(at, "%q is no part of an expression; comparisons are = != < <= > >= =~ !~", text[:1])
	}
	return token{tokenWord, text[:n], at}, n, nil
}
