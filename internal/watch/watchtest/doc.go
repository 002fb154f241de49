// Package watchtest sends samples as jobs do, for tests and measurements.
package watchtest
