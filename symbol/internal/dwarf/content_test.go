package dwarf

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// A compressed section is inflated up to what is read, and an error behind that changes nothing.
func TestContent(t *testing.T) {
	const size, good = 10 * inflateAtLeast, 4 * inflateAtLeast
	text := bytes.Repeat([]byte("0123456789abcde\x00"), size/16)
	var s Sections
	s[Str] = Compressed(size, func() (io.Reader, error) { return bytes.NewReader(text[:good]), nil })
	d := New(s, Options{Budget: NewBudget(size)})
	if got := d.Sections[Str].ready; got != 0 {
		t.Errorf("%d bytes were inflated before the first use", got)
	}
	for _, c := range []struct{ off, ready int }{{10, maxString + 10}, {inflateAtLeast, 2 * inflateAtLeast}, {good - 6, good}} {
		if got := string(d.stringAt(Str, uint64(c.off))); got != "abcde" && got != "0123456789abcde" {
			t.Errorf("at %d: %q", c.off, got)
		}
		if got := d.Sections[Str].ready; got < c.ready || got > c.ready+inflateAtLeast {
			t.Errorf("after a string at %d, %d bytes are inflated, want about %d", c.off, got, c.ready)
		}
	}
	c := d.at(Str, good)
	if c.u8(); c.err == nil || !strings.Contains(c.err.Error(), "262144 bytes, expected 655360") {
		t.Errorf("behind the end: %v", c.err)
	}
	if _, err := d.Sections[Str].All(d.Budget); err == nil {
		t.Error("a section that ends early is whole")
	}
	all := Compressed(size, func() (io.Reader, error) { return bytes.NewReader(text), nil })
	if b, err := all.All(d.Budget); err != nil || !bytes.Equal(b, text) {
		t.Errorf("%d bytes: %v", len(b), err)
	}
}
