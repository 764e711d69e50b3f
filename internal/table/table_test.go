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
    7  a_function_…y_long_name file.c:12
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
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"größe", 4, "g…ße"},
		{"main /home/user/project/src/main.c:217", 20, "main main.c:217"},
		{"std::vector<int>::push_back /usr/include/c++/12/bits/stl_vector.h:552", 34, "std::vec…ush_back stl_vector.h:552"},
		{"__libc_start_call_main ../sysdeps/nptl/libc_start_call_main.h:58", 34, "__libc_…all_main libc_sta…ain.h:58"},
		{"f a_file_with_a_rather_long_name.c:1", 30, "f a_file_with_a…_long_name.c:1"},
		{"operator new(unsigned long)", 20, "operator …gned long)"},
		{"  main /src/file.c:1 (+12 call sites)", 20, "  main /s…all sites)"},
	} {
		if got := Fit(c.text, c.n); got != c.want || len([]rune(got)) > c.n {
			t.Errorf("Fit %q to %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
