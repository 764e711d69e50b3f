package elffile

import (
	"encoding/binary"
	"testing"
)

func TestBuildID(t *testing.T) {
	note := func(name string, kind uint32, desc string) string {
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(desc)))
		b = binary.LittleEndian.AppendUint32(b, kind)
		pad := func(s string) string { return s + "\x00\x00\x00"[:-len(s)&3] }
		return string(b) + pad(name) + pad(desc)
	}
	id := note("GNU\x00", 3, "\x12\xab\xcd")
	for _, c := range []struct{ name, notes, want string }{
		{"no note", "", ""},
		{"the build-id alone", id, "12abcd"},
		{"without padding", id[:len(id)-1], "12abcd"},
		{"after other notes", note("GNU\x00", 1, "abcd") + note("lwsbt\x00", 3, "xy") + id, "12abcd"},
		{"cut", id[:len(id)-2], ""},
		{"a name beyond the end", "\xff\xff\xff\xff" + id[4:], ""},
		{"a description beyond the end", id[:4] + "\xff\xff\xff\xff" + id[8:], ""},
		{"empty", note("GNU\x00", 3, ""), ""},
		{"too long", note("GNU\x00", 3, string(make([]byte, 65))), ""},
	} {
		if got := BuildID([]byte(c.notes), binary.LittleEndian); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
