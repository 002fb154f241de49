// Package python carries the recorder of dry runs inside the command.
package python
