package forms

import "testing"

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"free heap: 9":                            "free heap: 9",
		"\x1b[0;32mfree heap: 9\x1b[0m":           "free heap: 9",
		"\x1b[?25l\x1b[38;5;2mfree\x1b[K: 9":      "free: 9",
		"free heap: 9\x1b]0;title 8\a":            "free heap: 9",
		"free heap: \x1b]8;;http://x\x1b\\9":      "free heap: 9",
		"\x1bPq#0\x1b\\free heap: 9":              "free heap: 9",
		"\x1b(Bfree heap: 9":                      "free heap: 9",
		"\x1b741232 free":                         "41232 free", // ESC 7 saves the cursor
		"free heap: 9\x1b]0;no end, which is cut": "free heap: 9",
		"free heap: 9\x1b":                        "free heap: 9",
		"free heap: 9\x1b[":                       "free heap: 9",
		"\x1b[1 qfree heap: 9":                    "free heap: 9",
	} {
		if got := string(plain([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
