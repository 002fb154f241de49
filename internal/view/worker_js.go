package view

import "embed"

// Nobody can connect to a server in the browser.
type listener = any

// dist is empty: in the browser the page is there before the server is.
var dist embed.FS
