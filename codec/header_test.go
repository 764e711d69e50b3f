package codec_test

import (
	"fmt"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

func TestHeaderRefused(t *testing.T) {
	keys := func(pairs ...string) (list []codec.HeaderKey) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, codec.HeaderKey{Key: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	for name, h := range map[string]codec.Header{
		"no verb":                  {},
		"a verb in upper case":     {Verb: "Map"},
		"a verb with a digit":      {Verb: "map2"},
		"begin without a number":   {Verb: "begin"},
		"map with a number":        {Verb: "map", HasNumber: true},
		"a key without a name":     {Verb: "map", Keys: keys("", "5")},
		"a key with a digit":       {Verb: "map", Keys: keys("t", "5", "t2", "5")},
		"a time that is no number": {Verb: "map", Keys: keys("t", "+5")},
		"a time that is empty":     {Verb: "map", Keys: keys("t", "")},
		"a time of 65 bits":        {Verb: "map", Keys: keys("t", "18446744073709551616")},
		"a word of 16 bits":        {Verb: "boot", Keys: keys("prog", "x", "w", "16")},
		"a heap with a number":     {Verb: "heap", HasNumber: true},
		"a shift of 5":             {Verb: "boot", Keys: keys("shift", "5")},
		"code without length":      {Verb: "boot", Keys: keys("code", "8000000")},
		"code of no length":        {Verb: "boot", Keys: keys("code", "8000000+0")},
	} {
		dst := []byte("before")
		got, err := codec.AppendHeader(dst, &h)
		wantError(t, err, "header-line", -1, "BT-HEAD-1")
		if string(got) != "before" {
			t.Errorf("%s: %q beside a refusal", name, got)
		}
	}
	h := codec.Header{Verb: "map", Keys: keys("t", "005", "t", "x")}
	if got, err := codec.AppendHeader(nil, &h); err != nil || string(got) != "~h#map t=005 t=x" {
		t.Errorf("zeros and the second of equal keys: %q, %v", got, err)
	}
}

// Keys of call paths, in any header: the first of equal ones is checked. (BT-HEAD-2, BT-HEAD-6)
func TestHeaderOfPaths(t *testing.T) {
	for key, values := range map[string]struct{ good, bad []string }{
		"shift":  {[]string{"0", "4", "04"}, []string{"5", "", "-1", "0x1"}},
		"base":   {[]string{"0", "4294967295"}, []string{"4294967296", "x", ""}},
		"sample": {[]string{"1", "18446744073709551615"}, []string{"0", "00", "18446744073709551616", ""}},
		"l":      {[]string{"0", "18446744073709551615"}, []string{"1.5", ""}},
		"cut":    {[]string{"7"}, []string{"+7"}},
		"size":   {[]string{"7"}, []string{"7k"}},
		"free":   {[]string{"7"}, []string{" 7"}},
		"min":    {[]string{"7"}, []string{"seven"}},
		"k":      {[]string{"paths", "diff", "later", ""}, nil},
		"build":  {[]string{"5ca1ab1e", "any"}, nil},
		"code": {[]string{"8000000+60000", "0+1", "0008000000+060000,20000000+800", "Ff+aB", "ffffffffffffffff+1", "1+ffffffffffffffff"},
			[]string{"", "8000000", "8000000+", "+1", "8000000+0", "1+1,", ",1+1", "1+1,,2+1", "0x1+1", "1+1;2+1", "1+1 2+1",
				"ffffffffffffffff+2", "10000000000000000+1", "1+10000000000000000", "g+1", "1-1"}},
		"heap": {[]string{"20000800+4000"}, []string{"20000800"}},
	} {
		check := func(value string, want bool) {
			h := codec.Header{Verb: "later", Keys: []codec.HeaderKey{{Key: key, Value: value}}}
			line, err := codec.AppendHeader(nil, &h)
			if (err == nil) != want {
				t.Errorf("%s=%q: written %v", key, value, err)
			}
			escaped := []byte("~h#later " + key + "=")
			for _, c := range []byte(value) {
				escaped = fmt.Appendf(escaped, "%%%02x", c)
			}
			var read codec.Header
			err = codec.ParseHeader(&read, escaped)
			if (err == nil) != want || want && read.Keys[0].Value != value {
				t.Errorf("%s: %v", escaped, err)
			}
			if err == nil && codec.ParseHeader(&read, line) != nil {
				t.Errorf("%s is not read", line)
			}
		}
		for _, v := range values.good {
			check(v, true)
		}
		for _, v := range values.bad {
			check(v, false)
			var read codec.Header
			if err := codec.ParseHeader(&read, []byte("~h#boot "+key+"="+values.good[0]+" "+key+"=?")); err != nil {
				t.Errorf("the second %s: %v", key, err)
			}
		}
	}
}

func ExampleParseRanges() {
	ranges, ok := codec.ParseRanges("8000000+60000,20000000+800")
	fmt.Printf("%x %v\n", ranges, ok)
	fmt.Println(codec.FormatRanges(ranges))
	// Output:
	// [{8000000 60000} {20000000 800}] true
	// 8000000+60000,20000000+800
}

func TestHeaderTilde(t *testing.T) {
	h := codec.Header{Verb: "boot", Keys: []codec.HeaderKey{{Key: "prog", Value: "~/a~m#"}}}
	line, err := codec.AppendHeader(nil, &h)
	if err != nil || string(line) != "~h#boot prog=%7E/a%7Em#" {
		t.Errorf("written %q, %v", line, err)
	}
	var read codec.Header
	if err := codec.ParseHeader(&read, []byte("~h#boot prog=~/a~x#")); err != nil || read.Keys[0].Value != "~/a~x#" {
		t.Errorf("a tilde as it is: %+v, %v", read, err)
	}
	wantError(t, codec.ParseHeader(&read, []byte("~h#boot prog=~/a~m#")), "header-line", 16, "BT-HEAD-1")
}

func TestHeaderEnd(t *testing.T) {
	for text, want := range map[string]struct {
		n     int
		whole bool
	}{
		"~h#map t=5":            {10, false},
		"~h#map t=5 \t":         {10, false},
		"~h#map t=5\n":          {10, true},
		"~h#map t=5 \r\n":       {10, true},
		"~h#map t=5\x1b[0m":     {10, true},
		"~h#map t=5~m#ABAABA==": {10, true},
		"~h#map t=5 ~h#map t=6": {10, true},
		"~h#map t=5~b#":         {10, true},
		"~h#map t=5~e#":         {10, true},
		"~h#map t=5~~m#":        {11, true},
		"~h#map t=5~p#":         {10, true},
		"~h#map t=5~v#":         {10, true},
		"~h#map t=5~x#":         {13, false},
		"~h#map t=5~m":          {12, false},
		"~h#~h#":                {3, true},
		"~h# \n":                {3, true},
		"~h#":                   {3, false},
	} {
		if n, whole := codec.HeaderEnd([]byte(text)); n != want.n || whole != want.whole {
			t.Errorf("%q: %d, %v, want %d, %v", text, n, whole, want.n, want.whole)
		}
	}
}

func TestAppendEvent(t *testing.T) {
	pcs := make([]uint64, 33)
	for i := range pcs {
		pcs[i] = uint64(i + 1)
	}
	encode := func(depth int, u *codec.User) ([]byte, error) {
		return codec.Encoder{}.AppendEvent(nil, &codec.Stack{Size: 5, PCs: pcs[:depth]}, u)
	}
	blob, err := encode(32, user(1, 0x10, 5, 0))
	if err != nil {
		t.Fatal(err)
	}
	var s codec.Stack
	var u codec.User
	if err := (codec.Decoder{}).DecodeEvent(&s, &u, blob); err != nil || len(s.PCs) != 31 || s.PCs[30] != 31 {
		t.Errorf("of 32 frames %x, %v, want the 31 innermost", s.PCs, err)
	}
	for name, tt := range map[string]struct {
		depth  int
		user   *codec.User
		reason codec.Reason
	}{
		"33 frames":                     {33, user(1, 0x10, 5, 0), "frames"},
		"no event":                      {1, user(1, 0x10), "event"},
		"no address":                    {1, user(5, 1), "event"},
		"moved, no old address":         {1, user(1, 0x10, 5, 2), "event"},
		"an event without a meaning":    {1, user(1, 0x10, 5, 3), "event"},
		"allocated, and an old address": {1, user(1, 0x10, 5, 0, 6, 1), "event"},
		"freed, and an old address":     {1, user(1, 0x10, 5, 1, 6, 1), "event"},
	} {
		got, err := encode(tt.depth, tt.user)
		if e, ok := err.(*codec.Error); !ok || e.Reason != tt.reason || got != nil {
			t.Errorf("%s: %x, %v, want %s", name, got, err, tt.reason)
		}
	}
	if _, err := encode(1, user(1, 0x10, 5, 2, 6, 0x10)); err != nil {
		t.Errorf("moved in place: %v", err)
	}
}

// An event with an unknown number requires no other field.
func TestUnknownEventAlone(t *testing.T) {
	var s codec.Stack
	var u codec.User
	blob := blobOf(t, "00000. 000001. 1. 0101. 000011. 111.", 0)
	if err := (codec.Decoder{}).DecodeEvent(&s, &u, blob); err != nil {
		t.Error(err)
	}
	if v, ok := u.Get(codec.TagEvent); v != 7 || !ok {
		t.Errorf("event %d, %v", v, ok)
	}
}

func TestWordOfParts(t *testing.T) {
	// Two frames, 1 and 1 - 2, and the first bit of a third.
	const wraps = "00011. 0. 000001. 1. 1. 000. 1. 000010. 10. "
	cut := blobOf(t, wraps+"1", 0)
	cut = cut[:len(cut)-2]
	var s codec.Stack
	if depth, _, _ := (codec.Decoder{Word: 32}).Salvage(&s, cut); depth != 3 || len(s.PCs) != 2 || s.PCs[1] != 1<<32-1 {
		t.Errorf("salvaged at word 32: %d, %x", depth, s.PCs)
	}
	if _, _, _ = (codec.Decoder{}).Salvage(&s, cut); len(s.PCs) != 2 || s.PCs[1] != 1<<64-1 {
		t.Errorf("salvaged at word 64: %x", s.PCs)
	}
	wide := blobOf(t, "00010. 0. 100001. 100000000000000000000000000000000. 0", 0)
	wide = wide[:len(wide)-2]
	_, _, err := codec.Decoder{Word: 32}.Salvage(&s, wide)
	if len(s.PCs) != 0 {
		t.Errorf("salvaged %x", s.PCs)
	}
	wantError(t, err, "count", 8, "BT-COUNT-4")
}

// A range has a length, also from 0 on. (BT-HEAD-6)
func TestRangesHaveLength(t *testing.T) {
	for value, want := range map[string]bool{"0+0": false, "5+0": false, "0+1": true, "ffffffffffffffff+1": true, "ffffffffffffffff+2": false} {
		if _, ok := codec.ParseRanges(value); ok != want {
			t.Errorf("%s: %v, want %v", value, ok, want)
		}
	}
}
