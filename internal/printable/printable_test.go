package printable

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"std::vector<int, char \\ \"'\"": "std::vector<int, char \\ \"'\"",
		"größe_数":                        "größe_数",
		"a\nb":                           `a\nb`,
		"\x1b[31mred\x07":                `\x1b[31mred\a`,
		"\x9b31m":                        `\x9b31m`,
		"\u009b31m":                      `\u009b31m`,
		"\u202egnirts":                   `\u202egnirts`,
		"a\u2028b":                       `a\u2028b`,
		"no\u00a0break":                  `no\u00a0break`,
		"\xff\xfe":                       `\xff\xfe`,
		"\x00\x7f":                       `\x00\x7f`,
		"\ufffd":                         "\ufffd",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\nb\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q: %q is not UTF-8", s, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q: %q holds %U", s, got, r)
			}
		}
		if again := Text(got); again != got {
			t.Errorf("%q: again %q", got, again)
		}
	})
}
