package snapshot

import "github.com/ashlar-mem/ashlar/trace"

// The keys of snapshots, and the texts that are common as values. They are the
// first texts in the table of a file, so a key is known by its number.
const (
	keyNone trace.StringID = iota

	// Top level, spec 10.2.
	keySegments
	keyDeviceTraces
	keySettings
	keyAnnotations
	keyHostSegments
	keyHostTraces

	// Events, spec 10.4.
	keyAction
	keyAddr
	keyDeviceFree
	keySize
	keyStream
	keyTime
	keyCompile
	keyMeta
	keyFrames
	keyPoolID

	// Frames, spec 10.6.
	keyName
	keyFilename
	keyLine

	// Segments and blocks, spec 10.3.
	keyDevice
	keyAddress
	keyTotalSize
	keyAllocatedSize
	keyActiveSize
	keyRequestedSize
	keySegmentType
	keySegmentPoolID
	keyExpandable
	keyBlocks
	keyState
	keyHistory
	keyRealSize

	keyStage // annotations, spec 10.7

	// Actions in the order of package alloc.
	textAlloc
	textFreeRequested
	textFreeCompleted
	textSegmentAlloc
	textSegmentFree
	textSegmentMap
	textSegmentUnmap
	textOOM
	textSnapshot

	// Values of segment_type, state and stage.
	textSmall
	textLarge
	textActive
	textPending
	textInactive
	textStart
	textEnd

	numKeys
)

var keyTexts = [numKeys]string{
	"",
	"segments", "device_traces", "allocator_settings", "external_annotations", "host_segments", "host_traces",
	"action", "addr", "device_free", "size", "stream", "time_us", "compile_context", "user_metadata", "frames", "pool_id",
	"name", "filename", "line",
	"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "segment_type",
	"segment_pool_id", "is_expandable", "blocks", "state", "history", "real_size",
	"stage",
	"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
	"oom", "snapshot",
	"small", "large", "active_allocated", "active_pending_free", "inactive", "START", "END",
}

// newStrings returns a table that begins with the keys.
func newStrings() *trace.Strings {
	s := &trace.Strings{}
	for _, text := range keyTexts[1:] {
		s.Add(text)
	}
	return s
}
