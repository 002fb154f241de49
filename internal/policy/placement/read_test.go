package placement

import (
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	p, err := Read(strings.NewReader("id,lower,upper,size\n10, 3,9,7\n\n9,0,5,100\nb,1,2,3\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.IDs, []string{"10", "9", "b"}) || p.Buffers[0] != (Buffer{3, 9, 7}) {
		t.Errorf("%+v", p)
	}
	for text, want := range map[string]string{
		"":                                        "no buffers",
		"id,lower,upper\n":                        "line 1",
		"id,lower,upper,size\n":                   "no buffers",
		"id,lower,upper,size\n1,2,3\n":            "line 2: 3 fields",
		"id,lower,upper,size\n1,5,5,1\n":          "line 2: upper 5 is not after lower 5",
		"id,lower,upper,size\n1,x,5,1\n":          `line 2: lower is "x"`,
		"id,lower,upper,size\n1,1,y,1\n":          `line 2: upper is "y"`,
		"id,lower,upper,size\n1,1,5,-1\n":         `line 2: size is "-1"`,
		"id,lower,upper,size\n1,1,5,1\n1,2,3,4\n": `line 3: id "1" is there already`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
