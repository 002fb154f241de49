package http

// The methods and statuses that the server uses.
const (
	MethodDelete = "DELETE"
	MethodGet    = "GET"
	MethodHead   = "HEAD"
	MethodPost   = "POST"

	StatusOK                    = 200
	StatusPermanentRedirect     = 308
	StatusBadRequest            = 400
	StatusRequestTimeout        = 408
	StatusForbidden             = 403
	StatusNotFound              = 404
	StatusMethodNotAllowed      = 405
	StatusConflict              = 409
	StatusRequestEntityTooLarge = 413
	StatusUnsupportedMediaType  = 415
	StatusUnprocessableEntity   = 422
	StatusInternalServerError   = 500
	StatusServiceUnavailable    = 503
)
