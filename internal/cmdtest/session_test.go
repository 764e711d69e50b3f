package cmdtest

import "testing"

func TestLike(t *testing.T) {
	for _, c := range []struct {
		text, want string
		like       bool
	}{
		{"a 0x55 b\n", "a 0x… b\n", true},
		{"a 0x55 b\n", "a 0x… c\n", false},
		{"a\nb\n", "a…\n", false},
		{"a\nb\nc\nd\n", "a\n…\nd\n", true},
		{"a\nd\n", "a\n…\nd\n", true},
		{"a\nd\ne\n", "a\n…\nd\n", false},
		{"a (b.c:*)\n", "a (b.c:*)\n", true},
		{"a", "", false},
	} {
		if got := like(c.text, c.want); got != c.like {
			t.Errorf("%q as %q: %t", c.text, c.want, got)
		}
	}
}

func TestCommands(t *testing.T) {
	list := commands("$ a \\\n    b\n1\n2\\\n3\n$ c\n$ d\n")
	want := []typed{{"a \\\n    b", "1\n2\\\n3\n"}, {"c", ""}, {"d", ""}}
	if len(list) != len(want) {
		t.Fatalf("%q", list)
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("%q, want %q", list[i], want[i])
		}
	}
}

func TestKeep(t *testing.T) {
	for _, c := range []struct{ text, was, want string }{
		{"at 0x5\nnew\nat 0x6\n", "at 0x…\nold\nat 0x…\n", "at 0x…\nnew\nat 0x…\n"},
		{"at 0x5\nnew\nmore\nat 0x6\n", "at 0x…\nold\nat 0x…\n", "at 0x…\nnew\nmore\nat 0x…\n"},
		{"at 0x5\n", "at 0x…\nat 0x…\n", "at 0x…\n"},
		{"a\nb\n", "…\n", "a\nb\n"},
		{"", "a\n", ""},
	} {
		if got := keep(c.text, c.was); got != c.want {
			t.Errorf("%q as %q: %q, expected %q", c.text, c.was, got, c.want)
		}
	}
}
