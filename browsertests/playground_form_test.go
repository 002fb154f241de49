package browsertests

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// What is set while the program runs and has no effect is told, and the form
// shows what is in force. A limit can be taken away.
func TestPlaygroundSettings(t *testing.T) {
	s := open(t, "#//playground?v=1&s=device+total%3D512MiB+limit%3D100MiB;alloc+a+4MiB&step=1")
	s.at(1)
	s.must(s.page.Type("input[name=conf]", "per_process_memory_fraction:0.1"))
	s.click("[data-act=set]")
	s.at(2)
	s.until("document.querySelector('.sentences').innerText.includes('per_process_memory_fraction is read once')")
	s.until("document.querySelector('input[name=conf]').value === ''")
	if got := s.text(".strip"); !strings.Contains(got, "limit 100.00 MiB") {
		t.Errorf("the limit is not the one before: %q", got)
	}
	s.must(s.page.Type("input[name=limit]", "none"))
	s.click("[data-act=set]")
	s.at(3)
	s.until("document.querySelector('.strip').innerText.includes('no limit') && document.querySelector('input[name=limit]').value === ''")
}

// What is wrong with a form is said without the number of a line that nobody
// wrote, and is gone when the next step works.
func TestPlaygroundFormErrors(t *testing.T) {
	s := open(t, "#//playground?v=1&s=device+total%3D512MiB;alloc+a+4MiB&step=1")
	s.hints = append(s.hints, "400 (Bad Request)")
	s.at(1)
	s.must(s.page.Type("input[name=alloc-size]", "much"))
	s.press(page.Enter)
	s.until("document.querySelector('.notice').innerText.includes('does not begin with a number')")
	if got := s.text(".notice"); strings.HasPrefix(got, "line ") {
		t.Errorf("a form is told %q", got)
	}
	s.must(s.page.Type("input[name=alloc-size]", "4MiB"))
	s.press(page.Enter)
	s.at(2)
	if got := s.text(".notice"); got != "" {
		t.Errorf("the next step worked, but the page says %q", got)
	}
}

// In a dialog a question mark is text, and what is wrong with what was pasted is
// said in front, not behind it.
func TestPlaygroundSharePasted(t *testing.T) {
	s := open(t, "#//playground?lesson=pools")
	s.hints = append(s.hints, "400 (Bad Request)")
	s.at(0)
	s.press("s")
	s.sees("dialog[open] textarea")
	s.must(s.page.Type("dialog[open] textarea", "alloc a 4MiB?"))
	if n := s.number("document.querySelectorAll('dialog[open]').length"); n != 1 {
		t.Errorf("%v dialogs are open after a question mark in a field", n)
	}
	var pasted string
	s.value("document.querySelector('dialog[open] textarea').value", &pasted)
	if pasted != "alloc a 4MiB?" {
		t.Errorf("the field has %q", pasted)
	}
	s.click("dialog[open] [data-act=open]")
	s.until("document.querySelector('dialog[open] .trouble')?.innerText.includes('line 1')")
	// Outside fields it still shows the keys.
	s.value("document.querySelector('dialog[open] .lines').focus()", nil)
	s.press("?")
	s.until("document.querySelectorAll('dialog[open]').length === 2")
}
