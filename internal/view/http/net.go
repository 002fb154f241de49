//go:build !js

package http

import "net/http"

// These are those of net/http.
type (
	Header             = http.Header
	MaxBytesError      = http.MaxBytesError
	Request            = http.Request
	ResponseWriter     = http.ResponseWriter
	ResponseController = http.ResponseController
)

// These are those of net/http.
var (
	MaxBytesReader        = http.MaxBytesReader
	NewRequestWithContext = http.NewRequestWithContext
	NewResponseController = http.NewResponseController
)
