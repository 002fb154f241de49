// Package placement plans where buffers lie whose lifetimes are known beforehand:
// a static plan, which knows the future and so shows what no allocator can do.
//
// [Solve] places the largest buffers first, each as low as those allow that live at
// the same time, and then looks for a better order as long as there is time. [Check]
// looks at a plan without knowing how it was made. [MaxLoad] is the bound: the most
// bytes that are live at a time.
package placement
