package managed

// Page is the unit that is moved.
const Page = 2 << 20

// Memory is a device of some pages and what is in them. The zero value has none.
type Memory struct {
	capacity int
	resident int
	pages    []page
	// the list of resident pages: the most recently used first
	newest, oldest int32
	moved          uint64
}

// page is one page of addresses.
type page struct {
	live         int32 // blocks in it
	newer, older int32
	resident     bool
	onHost       bool // the host has its content
	dirty        bool // the device has changed it since
}

const none = -1

// New returns a device with so many bytes, for addresses below end.
func New(bytes, end uint64) *Memory {
	return &Memory{capacity: int(max(bytes/Page, 1)), pages: make([]page, end/Page+1), newest: none, oldest: none}
}

// Moved returns the bytes that went from the device to the host or back.
func (m *Memory) Moved() uint64 { return m.moved }

// Begin adds a block, which is written.
func (m *Memory) Begin(addr, size uint64) {
	m.each(addr, size, func(i int32) {
		m.pages[i].live++
		m.touch(i, true)
	})
}

// Touch uses a part of a block.
func (m *Memory) Touch(addr, size uint64, write bool) {
	m.each(addr, size, func(i int32) { m.touch(i, write) })
}

// End removes a block.
func (m *Memory) End(addr, size uint64) {
	m.each(addr, size, func(i int32) {
		p := &m.pages[i]
		if p.live--; p.live == 0 {
			p.onHost, p.dirty = false, false
		}
	})
}

func (m *Memory) each(addr, size uint64, f func(i int32)) {
	for i := addr / Page; i <= (addr+max(size, 1)-1)/Page; i++ {
		f(int32(i))
	}
}

// touch makes a page resident and the most recently used.
func (m *Memory) touch(i int32, write bool) {
	p := &m.pages[i]
	if p.resident {
		m.unlink(i)
	} else {
		if m.resident == m.capacity {
			m.evict()
		}
		m.resident++
		if p.resident = true; p.onHost {
			m.moved += Page
		}
	}
	p.dirty = p.dirty || write
	p.newer, p.older = none, m.newest
	if m.newest != none {
		m.pages[m.newest].newer = i
	} else {
		m.oldest = i
	}
	m.newest = i
}

func (m *Memory) unlink(i int32) {
	p := &m.pages[i]
	if p.newer == none {
		m.newest = p.older
	} else {
		m.pages[p.newer].older = p.older
	}
	if p.older == none {
		m.oldest = p.newer
	} else {
		m.pages[p.older].newer = p.newer
	}
}

// evict sends the least recently used page away.
func (m *Memory) evict() {
	i := m.oldest
	m.unlink(i)
	p := &m.pages[i]
	p.resident = false
	m.resident--
	if p.live == 0 {
		return
	}
	if p.dirty || !p.onHost {
		m.moved += Page
	}
	p.onHost, p.dirty = true, false
}
