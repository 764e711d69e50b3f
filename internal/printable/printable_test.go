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

func TestNumbers(t *testing.T) {
	for hours, want := range map[float64]string{0: "0 s", 0.01: "36 s", 0.5: "30 min", 1: "1 h", 28.68: "28.7 h", 47.9: "47.9 h", 48: "2 days", 400: "16.7 days", 24 * 365: "365 days", 24 * 730: "2 years",
		999.6 * 24 * 365: "over 1,000 years"} {
		if got := Duration(hours); got != want {
			t.Errorf("%g hours: %q, want %q", hours, got, want)
		}
	}
	for v, want := range map[float64]string{0: "+0", -0.04: "+0", 0.05: "+0.1", -1.25: "-1.2", 99.95: "+100", 101.6: "+102", -1234567.8: "-1,234,568"} {
		if got := Amount(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
	if got := Signed(101.6); got != "+101.6" {
		t.Errorf("%q", got)
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
