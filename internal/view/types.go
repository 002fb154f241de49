package view

import "reflect"

// DocumentTypes returns the types of the documents that are the page's own, by
// the names that the page has for them and for their parts. Parts that are not
// listed have their Go names there.
func DocumentTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"Runs":      reflect.TypeFor[runList](),
		"Run":       reflect.TypeFor[listing](),
		"FixCurve":  reflect.TypeFor[fixCurve](),
		"Link":      reflect.TypeFor[link](),
		"Meta":      reflect.TypeFor[overview](),
		"Peak":      reflect.TypeFor[peakAt](),
		"Range":     reflect.TypeFor[span](),
		"Curve":     reflect.TypeFor[curve](),
		"Alloc":     reflect.TypeFor[allocation](),
		"Frame":     reflect.TypeFor[placedFrame](),
		"FoundAt":   reflect.TypeFor[foundAlloc](),
		"Found":     reflect.TypeFor[foundEvent](),
		"Between":   reflect.TypeFor[between](),
		"Flow":      reflect.TypeFor[flow](),
		"StackFlow": reflect.TypeFor[stackFlow](),
		"Matches":   reflect.TypeFor[matchSums](),
		"Windows":   reflect.TypeFor[windows](),
		"Legend":    reflect.TypeFor[legend](),
		"Segments":  reflect.TypeFor[segmentMap](),
		"Stacks":    reflect.TypeFor[stackTree](),
		"StackSite": reflect.TypeFor[stackSite](),
		"Checked":   reflect.TypeFor[checked](),
		"Changes":   reflect.TypeFor[changeTree](),
		"StackNode": reflect.TypeFor[treeNode](),
		"Events":    reflect.TypeFor[eventList](),
		"Progress":  reflect.TypeFor[progress](),
		"Choice":    reflect.TypeFor[choice](),
		"Refusal":   reflect.TypeFor[refusal](),
		"Offer":     reflect.TypeFor[planForm](),
		"Option":    reflect.TypeFor[planOption](),
		"Kind":      reflect.TypeFor[planKind](),
		"Lessons":   reflect.TypeFor[lessons](),
	}
}
