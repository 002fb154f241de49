package text

import "testing"

func TestMarkdown(t *testing.T) {
	const text = "a|b <script> [x](http://evil) @all `c` # d"
	const want = "a&#124;b &#60;script&#62; &#91;x&#93;(http&#58;//evil) &#64;all &#96;c&#96; &#35; d"
	if got := markdown(text); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
