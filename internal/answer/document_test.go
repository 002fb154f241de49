package answer

import "testing"

func TestJSON(t *testing.T) {
	got, err := JSON(struct {
		File string `json:"file"`
	}{"a<b.pickle"})
	if want := "{\n  \"schema\": 1,\n  \"file\": \"a<b.pickle\"\n}\n"; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := JSON(struct{}{}); err != nil || string(got) != "{\n  \"schema\": 1\n}\n" {
		t.Errorf("%s, %v", got, err)
	}
	for _, wrong := range []any{[]int{1}, 7, nil} {
		if got, err := JSON(wrong); err == nil {
			t.Errorf("%v became %s", wrong, got)
		}
	}
}
