package table

import (
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	tb := Table{Head: []string{"Bytes", "Call site"}, Right: []bool{true}, Width: 40,
		Rows: [][]string{{"1,234", "main"}, {"7", "a_function_with_a_very_long_name /src/file.c:12"}}}
	var b strings.Builder
	if err := tb.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `Bytes  Call site
----------------------------------------
1,234  main
    7  a_function_with_…e /src/file.c:12
`
	got := b.String()
	for l := range strings.Lines(got) {
		if n := len([]rune(strings.TrimRight(l, "\n"))); n > 40 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
	if g, w := strings.Split(got, "\n"), strings.Split(want, "\n"); g[0] != w[0] || g[2] != w[2] || g[3] != w[3] || strings.Trim(g[1], "-") != "" {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := Fit("größe", 4); got != "g…ße" {
		t.Errorf("Fit: %q", got)
	}
}
