package cli

import (
	"errors"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	for _, c := range []struct {
		name  string
		table Table
		want  string
	}{
		{"80 columns at most", Table{Head: []string{"Bytes", "Call site"}, Right: []bool{true}, Width: 40,
			Rows: [][]string{{"1,234", "main"}, {"7", "a_function_with_a_very_long_name /src/file.c:12"}}}, `Bytes  Call site
----------------------------------------
1,234  main
    7  a_function_…y_long_name file.c:12
`},
		{"no limit", Table{Head: []string{"Call site", "Bytes"}, Right: []bool{false, true}, Rows: [][]string{{"a_function_with_a_very_long_name", "1"}}}, `Call site                         Bytes
-----------------------------------------
a_function_with_a_very_long_name      1
`},
		{"no row", Table{Head: []string{"Bytes", "Call site"}}, "Bytes  Call site\n"},
		{"one column", Table{Head: []string{"n"}, Right: []bool{true}, Rows: [][]string{{"12"}}}, " n\n----\n12\n"},
		{"spaces and empty cells", Table{Head: []string{"A", "B", ""}, Rows: [][]string{{"  x", "", ""}, {"", " y", "z "}}}, `A    B
-------------
  x
      y  z
`},
		{"bars and wide characters", Table{Head: []string{"A", "B"}, Rows: [][]string{{"▁▂█", "…"}, {"日本", "b"}}}, `A     B
---------
▁▂█   …
日本  b
`},
		{"what looks like a format", Table{Head: []string{"%d", "B"}, Rows: [][]string{{"%s\\n", "--"}}}, `%d    B
----------
%s\n  --
`},
	} {
		var b strings.Builder
		if err := c.table.Write(&b); err != nil || b.String() != c.want {
			t.Errorf("%s: error %v, got\n%swant\n%s", c.name, err, b.String(), c.want)
		}
	}
}

// A table that cannot be written ends, and says why.
func TestTableNotWritten(t *testing.T) {
	full := errors.New("disk full")
	rows := 0
	tb := Table{Head: []string{"n"}, Each: func(yield func([]string) bool) {
		for range 100 {
			if rows++; !yield([]string{"1"}) {
				return
			}
		}
	}}
	if err := tb.Write(&limited{n: 3, err: full}); err != full {
		t.Errorf("error %v, want %v", err, full)
	}
	if rows > 110 {
		t.Errorf("%d rows after the error", rows-100)
	}
}

// limited is a writer that takes n writes.
type limited struct {
	n   int
	err error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.n--; l.n < 0 {
		return 0, l.err
	}
	return len(p), nil
}

func TestFit(t *testing.T) {
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

func TestWrap(t *testing.T) {
	long := strings.Repeat("x,", 40)
	got := strings.Join(Wrap("a b "+long+" c\nd", 10), "|")
	if want := "a b|" + long + "|c|d"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
