package conformance

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

const goodRecord = "btv 1\n\nid: a/b\nclause: BT-LIT-1\nop: decode\nbits: 00001. 0. 000001. 1.\nbits: 000001. 0.\nwant: ok size=0 pcs=1\n"

func TestParse(t *testing.T) {
	vectors, err := Parse("x.btv", []byte("btv 1\n# head\nsource: by hand # note\nmachine: wrap32\n\n\n"+
		"id: a/b\nclause: BT-LIT-1 BT-SIZE-1\nop: decode encode\nin: size=0 pcs=1\nbits: 00001. 0.00 0001. 1.  # frame\n"+
		"bits: 000001. 0.\nhex: 080810080006\nwant: ok size=0 pcs=1\nwant[lws-x86_64]: crash SIGSEGV\n# end\n\n"+
		"id: t\nclause: BT-TEXT-1\nop: mline\nreading: lenient\ntext: \"a\\\"b # c\\u0000\"   # why not\nwant: reject base64\n"))
	if err == nil {
		t.Fatalf("hex that contradicts bits was accepted: %v", vectors[0])
	}
	vectors, err = Parse("x.btv", []byte("btv 1\n# head\nsource: by hand # note\nmachine: wrap32\n\n\n"+
		"id: a/b\nclause: BT-LIT-1 BT-SIZE-1\nop: decode encode\nin: size=0 pcs=1\nbits: 00001. 0.00 0001. 1.  # frame\n"+
		"bits: 000001. 0.\nwant: ok size=0 pcs=1\nwant[lws-x86_64]: crash SIGSEGV\n# end\n\n"+
		"id: t\nclause: BT-TEXT-1\nop: mline\nreading: lenient\ntext: \"a\\\"b # c\\u0000\"   # why not\nwant: reject base64\n"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := vectors[0], vectors[1]
	// 00001000 00000101 00000010 00, 6 bits of padding, length 6
	if got := words.Hex(a.Blob); got != "080502000006" {
		t.Errorf("blob %s, want 080502000006", got)
	}
	if a.Word != 32 || a.Row != 7 || len(a.Observed) != 1 || a.Observed[0].Text != "crash SIGSEGV" || a.Head.Source != "by hand" {
		t.Errorf("record a/b is %+v", a)
	}
	if want := []int{5, 7, 14, 16, 23, 25}; !reflect.DeepEqual(a.Bits.Spills, want) {
		t.Errorf("spill bits %v, want %v", a.Bits.Spills, want)
	}
	if *b.Text != "a\"b # c\x00" || !b.Lenient || b.Want.Reason != "base64" || b.Word != 32 {
		t.Errorf("record t is %+v", b)
	}
}

// The values of text and hex consist of pieces, which may be repeated.
func TestParsePieces(t *testing.T) {
	vectors, err := Parse("x.btv", []byte("btv 1\n\n"+
		"id: a\nop: mline\ntext: \"~m#\" \"A\"*3 ff00*2 \" # \"  # a comment\nwant: reject base64\n\n"+
		"id: b\nop: decode\nhex: 0010 00*3 0007  # a comment\nwant: ok size=0 pcs=-\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *vectors[0].Text, "~m#AAA\xff\x00\xff\x00 # "; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got, want := words.Hex(vectors[1].Blob), "00100000000007"; got != want {
		t.Errorf("hex %s, want %s", got, want)
	}
}

// Every error in a file names the file, the line and the expectation.
func TestParseErrors(t *testing.T) {
	record := func(lines string) string { return "btv 1\n\nid: a\nclause: BT-LIT-1\n" + lines }
	blob := "op: decode\nhex: 00100004\nwant: ok size=0 pcs=-\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty file", "", `x.btv:1: "", expected "btv 1"`},
		{"other version", "btv 2\n", `x.btv:1: "btv 2", expected "btv 1"`},
		{"blank first", "\nbtv 1\n", `x.btv:1: `},
		{"unknown head key", "btv 1\nauthor: me\n", `x.btv:2: head key "author"`},
		{"record in head", "btv 1\nid: a\n", `x.btv:2: head key "id"`},
		{"head machine", "btv 1\nmachine: pdp11\n", `x.btv:2: machine "pdp11"`},
		{"head spill", "btv 1\nspill: none\n", `x.btv:2: spill "none", expected any`},
		{"unknown key", record("colour: red\n"), `x.btv:5: key "colour", expected one of id`},
		{"no colon", record("hello\n"), `x.btv:5: "hello", expected key: value`},
		{"no blank", record("op:decode\n"), `x.btv:5: `},
		{"no value", record("op:\n"), `x.btv:5: op: nothing`},
		{"comment for value", record("op: # decode\n"), `x.btv:5: op: nothing`},
		{"carriage return", record("op: decode\r\n"), `x.btv:5: the line ends in a carriage return`},
		{"key twice", record("why: a\nwhy: b\n"), `x.btv:6: key "why" again`},
		{"evidence twice", record("want[a]: hang\nwant[a]: hang\n"), `x.btv:6: key "want[a]" again`},
		{"no id", "btv 1\n\nop: decode\n" + blob[11:], `x.btv:3: a record without id`},
		{"bad id", "btv 1\n\nid: a b\n", `x.btv:3: id "a b"`},
		{"bad clause", "btv 1\n\nid: a\nclause: FIELD-1\n", `x.btv:4: clause "FIELD-1"`},
		{"no op", record("why: none\n"), `x.btv:3: a: no op`},
		{"bad op", record("op: guess\n"), `x.btv:5: op "guess"`},
		{"op twice", record("op: decode decode\n"), `x.btv:5: op decode twice`},
		{"bad machine", record("machine: wrap16\n"), `x.btv:5: machine "wrap16"`},
		{"bad search", record("search: worst\n"), `x.btv:5: search "worst"`},
		{"bad word", record("word: 16\n"), `x.btv:5: word "16", expected 32 or 64`},
		{"bad reading", record("reading: loose\n"), `x.btv:5: reading "loose"`},
		{"size in hex", record("in: size=0x5 pcs=-\n"), `x.btv:5: size: "0x5"`},
		{"size with zero", record("in: size=05 pcs=-\n"), `x.btv:5: size: "05"`},
		{"size too large", record("in: size=18446744073709551616 pcs=-\n"), `x.btv:5: size: `},
		{"no pcs", record("in: size=5\n"), `x.btv:5: "size=5", expected size=N pcs=LIST`},
		{"pcs empty", record("in: size=5 pcs=\n"), `x.btv:5: pcs: ""`},
		{"pcs upper case", record("in: size=5 pcs=AB\n"), `x.btv:5: pcs: "AB"`},
		{"pcs 0x", record("in: size=5 pcs=0xab\n"), `x.btv:5: pcs: "0xab"`},
		{"bits other", record("bits: 00102.\n"), `x.btv:5: bits: '2' at character 5`},
		{"bits dot first", record("bits: .001\n"), `x.btv:5: bits: a spill bit '.' without a field`},
		{"bits dot twice", record("bits: 001..\n"), `x.btv:5: bits: a spill bit '.' without a field`},
		{"hex odd", record("hex: 123\n"), `x.btv:5: hex "123"`},
		{"hex upper case", record("hex: AB\n"), `x.btv:5: hex "AB"`},
		{"hex other length than bits", record("op: decode\nbits: 00000.\nhex: 000004\nwant: reject truncated\n"), `x.btv:3: a: hex differs from bits at bit 21`},
		{"hex of other size", record("op: decode\nbits: 00000.\nhex: 00000004\nwant: reject truncated\n"), `x.btv:3: a: hex has 4 bytes, expected 3`},
		{"hex with other bits", record("op: decode\nbits: 00000.\nhex: 800003\nwant: reject truncated\n"), `x.btv:3: a: hex differs from bits at bit 0`},
		{"hex with padding set", record("op: decode\nbits: 00000.\nhex: 010003\nwant: reject truncated\n"), `x.btv:3: a: hex differs from bits at bit 7`},
		{"line of another blob", record("op: decode\nhex: 00100004\nline: ~m#ABAABQ==\nwant: reject length\n"), `x.btv:3: a: line "~m#ABAABQ==", expected "~m#ABAABA=="`},
		{"line alone", record("op: decode\nline: ~m#ABAABQ==\nwant: reject length\n"), `x.btv:3: a: line without hex`},
		{"text unquoted", record("text: abc\n"), `x.btv:5: text abc`},
		{"text without end", record("text: \"abc\\\"\n"), `x.btv:5: text "abc\"`},
		{"text and more", record("text: \"a\" b\n"), `x.btv:5: text b, expected strings in double quotes, with JSON's escapes, bytes in hex, or ~p#(WORDS)`},
		{"text of a line without end", record("text: ~p#(flags=0\n"), `x.btv:5: text ~p#(flags=0, expected`},
		{"text of a bad line", record("text: ~p#(flags=x)\n"), `x.btv:5: text ~p#(flags=x): flags="x", expected`},
		{"text of an entry", record("text: ~p#(flags=0 dump=0 seq=0 0:142;live=1)\n"), `x.btv:5: text ~p#(flags=0 dump=0 seq=0 0:142;live=1): nothing, expected bytes=`},
		{"text and a word", record("text: \"a\"b\n"), `x.btv:5: text: "b" after a piece, expected a space or *N`},
		{"text in half a byte", record("text: \"a\" f\n"), `x.btv:5: text f, expected`},
		{"text zero times", record("text: \"a\"*0\n"), `x.btv:5: *0, expected * and a number from 1 on`},
		{"text too often", record("text: \"abc\"*70000\n"), `x.btv:5: more than 200000 bytes, expected fewer`},
		{"hex a number of times", record("hex: 00*x\n"), `x.btv:5: *x, expected * and a number from 1 on`},
		{"hex too often", record("hex: 00*200001\n"), `x.btv:5: more than 200000 bytes, expected fewer`},
		{"text escape", record("text: \"\\q\"\n"), `x.btv:5: text "\q"`},
		{"want unknown", record("want: maybe\n"), `x.btv:5: "maybe", expected ok`},
		{"want crash", record("want: crash SIGSEGV\n"), `x.btv:5: "crash SIGSEGV", expected ok`},
		{"want reason", record("want: reject nonsense\n"), `x.btv:5: reason "nonsense", expected one of lead-in`},
		{"want no reason", record("want: reject\n"), `x.btv:5: reason ""`},
		{"want part", record("want: part depth=33 pcs=-\n"), `x.btv:5: "depth=33 pcs=-", expected part`},
		{"evidence", record("want[x]: boom\n"), `x.btv:5: "boom", expected ok, reject`},
		{"evidence name", record("want[]: hang\n"), `x.btv:5: key "want[]"`},
		{"differs", record("differs: somewhere\n"), `x.btv:5: differs "somewhere"`},
		{"differs span", record("differs: bit 3-4\n"), `x.btv:5: differs "bit 3-4"`},
		{"differs backwards", record("differs: bits 4-3\n"), `x.btv:5: differs "bits 4-3"`},
		{"control alone", record("control: b\n" + blob), `x.btv:3: a: control and differs`},
		{"decode without blob", record("op: decode\nwant: reject short\n"), `x.btv:3: a: op decode without hex or bits`},
		{"decode without want", record("op: decode\nhex: 00\n"), `x.btv:3: a: op decode without want`},
		{"encode without in", record("op: encode\nmachine: exact64\nhex: 00100004\n"), `x.btv:3: a: op encode without in`},
		{"encode without machine", record("op: encode\nin: size=0 pcs=-\nhex: 00100004\n"), `x.btv:3: a: op encode without machine`},
		{"mline without text", record("op: mline\nwant: reject base64\n"), `x.btv:3: a: op mline without text`},
		{"format without result", record("op: format\nin: size=0 pcs=-\n"), `x.btv:3: a: op format without text`},
		{"in of another depth", record("op: decode\nin: size=0 pcs=1\nhex: 00100004\nwant: ok size=0 pcs=-\n"), `x.btv:3: a: want has 0 frames, expected the 1 of in`},
		{"in with other low bits", record("op: decode\nin: size=1 pcs=-\nhex: 00100004\nwant: ok size=0 pcs=-\n"), `x.btv:3: a: want: size is 0`},
		{"spill bits of another machine", record("op: encode\nmachine: exact64\nin: size=0 pcs=-\nbits: 00000. 000001. 0.\nhex: 04100004\n"), `x.btv:3: a: hex has the spill bit`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.btv", []byte(c.text))
			if err == nil {
				t.Fatalf("accepted, want %s", c.want)
			}
			var bad *ParseError
			if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := Parse("x.btv", []byte(goodRecord)); err != nil {
		t.Errorf("the good record: %v", err)
	}
}

func TestSetErrors(t *testing.T) {
	accepted := "id: ok\nclause: BT-LIT-1\nop: decode\nhex: 00100004\nwant: ok size=0 pcs=-\n\n"
	reject := func(hex, differs string) string {
		return accepted + "id: bad\nclause: BT-BLOB-2\nop: decode\ncontrol: ok\ndiffers: " + differs + "\nhex: " + hex + "\nwant: reject length\n"
	}
	written := "id: ok\nclause: BT-HEAD-1\nop: format\nin: head map - t=5 x=1\ntext: \"~h#map t=5 x=1\"\n\n"
	refuse := func(words string) string {
		return written + "id: bad\nclause: BT-HEAD-1\nop: format\ncontrol: ok\ndiffers: in\nin: head " + words + "\nwant: reject header-line\n"
	}
	event := func(in string) string {
		return "id: ok\nclause: BT-EVT-4\nop: event-encode\nmachine: exact64\nin: size=0 pcs=- user=1:10,5:0\nhex: 0004\n\n" +
			"id: bad\nclause: BT-EVT-4\nop: event-encode\ncontrol: ok\ndiffers: in\nmachine: exact64\nin: " + in + "\nwant: reject event\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"two words", refuse("map - t=x x=2"), `x.btv:9: bad: differs in: words ["t=x" "x=2"] differ`},
		{"two words more", refuse("map - t=5 x=1 y=1 z=1"), `x.btv:9: bad: differs in: words ["y=1" "z=1"] differ`},
		{"no word", refuse("map - t=5 x=1"), `x.btv:9: bad: differs in: words [] differ`},
		{"words of a stack", strings.Replace(refuse("map - t=x"), written, "id: ok\nop: format\nin: size=0 pcs=-\nwhy: none\ntext: \"~b#size: 0,\"\n\n", 1), `x.btv:9: bad: control vector ok is not to write such words`},
		{"two user fields", event("size=0 pcs=- user=1:11,5:3"), "x.btv:10: bad: differs in: 4 values differ"},
		{"a user field and the size", event("size=1 pcs=- user=1:10,5:3"), "x.btv:10: bad: differs in: 3 values differ"},
		{"two user fields less", event("size=0 pcs=-"), "x.btv:10: bad: differs in: 2 values differ"},
		{"id twice", accepted + accepted, "x.btv:9: id ok is that of x.btv:3"},
		{"no control vector", strings.Replace(reject("00100005", "bit 31"), "control: ok", "control: ko", 1), "x.btv:9: bad: control vector ko"},
		{"control vector rejected", strings.Replace(reject("00100005", "bit 31"), "control: ok", "control: bad", 1), "x.btv:9: bad: control vector bad is not an accepted vector"},
		{"another bit", reject("00100006", "bit 31"), "x.btv:9: bad: differs bit 31: the bit is the control vector's"},
		{"one bit more", reject("00180005", "bit 31"), "x.btv:9: bad: differs bit 31: also at bit 12"},
		{"no difference", reject("00100004", "bit 31"), "x.btv:9: bad: differs bit 31: bytes equal to the control vector's: true"},
		{"beyond the end", reject("00100005", "bit 32"), "x.btv:9: bad: differs bit 32: the place is beyond the end"},
		{"tail of another", reject("200003", "tail"), "x.btv:9: bad: differs tail: neither begins with the other, differing at bit 2"},
		{"insert of two", reject("ffff00100004", "insert 0"), "x.btv:9: bad: differs insert 0: also at bit 0"},
		{"word", reject("00100005", "word"), "x.btv:9: bad: differs word: bytes equal to the control vector's: false"},
		{"word undeclared", strings.Replace(reject("00100005", "bit 31"), "control:", "word: 32\ncontrol:", 1), "x.btv:9: bad: control vector ok is read in another way"},
	} {
		t.Run(c.name, func(t *testing.T) {
			vectors, err := Parse("x.btv", []byte("btv 1\n\n"+c.text))
			if err != nil {
				t.Fatal(err)
			}
			var set Set
			err = set.Add(vectors...)
			if err == nil {
				err = set.Check()
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
