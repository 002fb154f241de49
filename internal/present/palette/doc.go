// Package palette has the colours that stand for something, once for the page,
// the plan and the report.
//
// The hues are those of Okabe and Ito, which people with any kind of colour
// vision tell apart, but for the yellow: it is too loud for large areas and is
// Tol's olive here. A touch of the background makes large areas calm.
package palette
