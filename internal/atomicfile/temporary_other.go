//go:build !linux

package atomicfile

import (
	"errors"
	"os"
)

func createNameless(string) *os.File { return nil }

func link(*os.File, string) error { return errors.ErrUnsupported }

func lock(*os.File) {}

func removeStale(string) {}
