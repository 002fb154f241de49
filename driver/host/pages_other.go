//go:build !unix

package host

import (
	"errors"
	"os"
)

// Elsewhere there are no pages to be had in this way.

func mapPages(uint64, bool) ([]byte, error) { return nil, errors.ErrUnsupported }
func unmapPages([]byte) error               { return errors.ErrUnsupported }
func openPages([]byte) error                { return errors.ErrUnsupported }
func closePages([]byte) error               { return errors.ErrUnsupported }
func mapFile([]byte, *os.File, int64) error { return errors.ErrUnsupported }
