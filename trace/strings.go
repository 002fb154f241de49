package trace

// StringID names a text in a Strings table.
type StringID uint32

// NoString stands for a text that the file does not have. It is not the empty
// text.
const NoString StringID = 0

// Strings keeps each text once. The zero value is an empty table.
type Strings struct {
	texts []string // index 0 is unused
	ids   map[string]StringID
}

// Intern returns the id of a text, adding it at first use. The bytes are copied.
func (s *Strings) Intern(text []byte) StringID {
	if id, ok := s.ids[string(text)]; ok { // does not allocate
		return id
	}
	return s.add(string(text))
}

// Add is Intern for a string.
func (s *Strings) Add(text string) StringID {
	if id, ok := s.ids[text]; ok {
		return id
	}
	return s.add(text)
}

func (s *Strings) add(text string) StringID {
	if s.ids == nil {
		s.ids = map[string]StringID{}
		s.texts = []string{""}
	}
	id := StringID(len(s.texts))
	s.texts = append(s.texts, text)
	s.ids[text] = id
	return id
}

// Find returns the id of a text, or NoString if the table does not have it.
func (s *Strings) Find(text string) StringID { return s.ids[text] }

// Text returns the text with the given id; "" for NoString.
func (s *Strings) Text(id StringID) string {
	if id == NoString {
		return ""
	}
	return s.texts[id]
}

// Len returns the number of texts.
func (s *Strings) Len() int { return len(s.ids) }
