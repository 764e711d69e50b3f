package conformance

import (
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// What one side writes the other reads, for every operation.
func TestRequestLines(t *testing.T) {
	v := &Value{Size: 7520, PCs: []uint64{0x406651, 0}}
	for _, c := range []struct {
		r    Request
		line string
	}{
		{Request{Op: opDecode, Data: []byte{0, 0x10, 0, 4}, Word: 64}, "decode 7 00100004 word=64"},
		{Request{Op: opDecode, Data: []byte{}, Word: 32}, "decode 7 - word=32"},
		{Request{Op: opEnd, Data: []byte{0xff}, Word: 32}, "end 7 ff word=32"},
		{Request{Op: opSalvage, Data: []byte{0xff}, Word: 32}, "salvage 7 ff word=32"},
		{Request{Op: opMline, Data: []byte("~m#"), Word: 64}, "mline 7 7e6d23 reading=strict word=64"},
		{Request{Op: opMline, Data: []byte("~m#"), Word: 32, Lenient: true}, "mline 7 7e6d23 reading=lenient word=32"},
		{Request{Op: opBline, Data: []byte{}, Word: 64}, "bline 7 -"},
		{Request{Op: opEncode, In: v, Word: 64, Machine: codec.MachineWrap32, Search: codec.SearchBest}, "encode 7 machine=wrap32 search=best size=7520 pcs=406651,0"},
		{Request{Op: opFormat, In: &Value{}, Word: 64}, "format 7 size=0 pcs=-"},
		{Request{Op: opFormat, Data: []byte{0, 4}, Word: 64}, "format 7 blob=0004"},
		{Request{Op: opFormat, Data: []byte{0, 4}, Event: true, Word: 64}, "format 7 event=0004"},
		{Request{Op: opFormat, Words: "begin 3 t=5", Word: 64}, "format 7 head begin 3 t=5"},
		{Request{Op: opEventEncode, In: &Value{User: []UserField{{1, 16}, {5, 0}}}, Word: 64}, "event-encode 7 machine=exact64 search=lws size=0 pcs=- user=1:10,5:0"},
		{Request{Op: opMarks, Data: []byte{0, 0x10, 0, 4}, Word: 64}, "marks 7 00100004"},
		{Request{Op: opScan, Data: []byte("~"), Word: 64}, "scan 7 7e"},
		{Request{Op: opLog, Data: []byte("~"), Word: 64}, "log 7 7e"},
		{Request{Op: opHline, Data: []byte("~"), Word: 64}, "hline 7 7e"},
		{Request{Op: opUser, Data: []byte{0}, Word: 32}, "user 7 00 word=32"},
		{Request{Op: opEline, Data: []byte{0}, Word: 64}, "eline 7 00 word=64"},
		{Request{Op: opUserEncode, In: &Value{User: []UserField{{1, 16}}}, Word: 64}, "user-encode 7 machine=exact64 search=lws size=0 pcs=- user=1:10"},
	} {
		if got := c.r.Line("7"); got != c.line {
			t.Errorf("%+v: line %q, want %q", c.r, got, c.line)
		}
		id, got, known, err := ParseRequest(c.line)
		if id != "7" || !known || err != nil || got.Line("7") != c.line || got.Op != c.r.Op || got.Word != c.r.Word {
			t.Errorf("%q: id %q, known %v, %+v, %v", c.line, id, known, got, err)
		}
	}
}

func TestRequestErrors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", `"", expected OP ID`},
		{"decode", `"decode", expected OP ID`},
		{"decode  00", `"decode  00", expected OP ID`},
		{"decode 1", "decode: nothing, expected bytes in hex"},
		{"decode 1 0", `decode: hex "0"`},
		{"decode 1 00 word=16", `decode: "word=16", expected word=32`},
		{"decode 1 00 reading=strict", `decode: "reading=strict"`},
		{"decode 1 00 ", `decode: ""`},
		{"salvage 1 00 word=16", `salvage: "word=16"`},
		{"mline 1 00 reading=loose", `mline: "reading=loose"`},
		{"encode 1 size=0 pcs=-", "encode: no machine"},
		{"encode 1 search=lws size=0 pcs=-", "encode: no machine"},
		{"encode 1 machine=vax size=0 pcs=-", `encode: machine "vax"`},
		{"encode 1 machine=wrap64 search=odd size=0 pcs=-", `encode: search "odd"`},
		{"encode 1 machine=wrap64 speed=9 size=0 pcs=-", `encode: "speed=9"`},
		{"encode 1 machine=wrap64 size=0 pcs=", `encode: pcs: ""`},
		{"format 1 text", `format: "text", expected blob=HEX`},
		{"format 1 blob=x", `format: hex "x"`},
		{"format 1 size=0 pcs=- more", `format: "size=0 pcs=- more", expected size=N`},
	} {
		_, _, _, err := ParseRequest(c.line)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.line, err, c.want)
		}
	}
}

func TestAnswerLines(t *testing.T) {
	for _, c := range []struct {
		op   Op
		line string
	}{
		{opDecode, "ok 7 size=1 pcs=a,b"},
		{opEnd, "ok 7 size=1 pcs=-"},
		{opEncode, "blob 7 00100004"},
		{opFormat, "text 7 -"},
		{opSalvage, "part 7 depth=4 size=- pcs=1"},
		{opSalvage, "part 7 depth=1 size=5 pcs=1"},
		{opUser, "ok 7 size=1 pcs=- user=1:10,5:0"},
		{opMarks, "marks 7 wide=- wrap=- zero=- lossy=-"},
		{opScan, "found 7 m@0+11"},
		{opHline, "head 7 boot - w=32"},
		{opLog, "records 7 m@0+11;boot=0;dump=-;size=0;pcs=-"},
		{opDecode, "reject 7 back bit=6 because of this"},
		{opDecode, "reject 7 anything"},
		{opDecode, "skip 7 unsupported"},
	} {
		a, err := ParseAnswer(c.line, c.op, "7")
		verb, words, _ := strings.Cut(c.line, " 7 ")
		if verb == string(Reject) || verb == string(Skip) {
			if words = strings.TrimSpace(words); string(a.Outcome) != verb || !strings.HasSuffix(words, a.Text) {
				t.Errorf("%q: %+v", c.line, a)
			}
			continue
		}
		if got := c.op.row().out.write(a); err != nil || a.Outcome != OK || got != words {
			t.Errorf("%q: %+v is %q, %v", c.line, a, got, err)
		}
	}
	for _, c := range []struct {
		op         Op
		line, want string
	}{
		{opDecode, "", "expected ok 7"},
		{opDecode, "ok", `id "", expected 7`},
		{opDecode, "ok 8 size=1 pcs=-", `id "8", expected 7`},
		{opDecode, "OK 7 size=1 pcs=-", "expected ok 7"},
		{opDecode, "ok 7  size=1 pcs=-", `" size=1 pcs=-", expected size=N`},
		{opDecode, "ok 7 size=1 pcs=-,", "pcs: "},
		{opDecode, "ok 7 size=-1 pcs=-", "size: "},
		{opDecode, "part 7 depth=1 pcs=-", "part, expected ok"},
		{opEncode, "ok 7 size=1 pcs=-", "ok, expected blob"},
		{opEncode, "blob 7 0", `hex "0"`},
		{opSalvage, "part 7 depth=40 pcs=-", `"depth=40 pcs=-", expected part`},
		{opDecode, "reject 7", "no reason"},
		{opDecode, "reject 7 back bit=x", `bit="x"`},
	} {
		_, err := ParseAnswer(c.line, c.op, "7")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.line, err, c.want)
		}
	}
}

// What a testee says is printed for each vector that fails: it is bounded.
func TestLongRejection(t *testing.T) {
	if _, err := ParseAnswer("reject 7 "+strings.Repeat("x", 70_000), opDecode, "7"); err == nil || !strings.Contains(err.Error(), "expected a word of up to 64 bytes") || len(err.Error()) > 200 {
		t.Errorf("a long reason: %.300v", err)
	}
	a, err := ParseAnswer("reject 7 short bit=0 "+strings.Repeat("é", 70_000), opDecode, "7")
	if err != nil || a.Reason != "short" || a.Text != strings.Repeat("é", 200)+"..." {
		t.Errorf("long words: %v, %d bytes", err, len(a.Text))
	}
}

// What a writer must refuse is refused for the reason of BT-REJ-2 and BT-HEAD-1.
func TestFormatRefuses(t *testing.T) {
	testee, _ := Codec(t.Context())
	for _, c := range []struct{ request, want string }{
		{"size=1 pcs=1" + strings.Repeat(",1", 31), ""},
		{"size=1 pcs=1" + strings.Repeat(",1", 32), "frames"},
		{"head begin 0", ""},
		{"head begin -", "header-line"},
		{"head begin 4294967295", ""},
		{"head begin 4294967296", "header-line"},
		{"head boot - w=32", ""},
		{"head boot - w=16", "header-line"},
		{"head boot 1", "header-line"},
		{"head later 1 x=%0A", ""},
		{"head later - X=1", "header-line"},
		{"head later - x=%0", "header-line"},
		{"head later - x=1  y=2", "header-line"},
	} {
		_, r, _, err := ParseRequest("format 1 " + c.request)
		if err != nil {
			t.Fatal(err)
		}
		answers, err := testee.Ask([]Request{r})
		if err != nil || c.want == "" && answers[0].Outcome != OK || c.want != answers[0].Reason {
			t.Errorf("%s: %+v, %v, expected %s", c.request, answers, err, c.want)
		}
	}
}

// A wrong way to say hello is told from a right one.
func TestHello(t *testing.T) {
	h, err := ParseHello("hello btp=1 name=a version=2 ops=decode,encode machines=wrap64,zero32")
	if err != nil || h.Name != "a" || h.Version != "2" || len(h.Ops) != 2 || len(h.Machines) != 2 {
		t.Fatalf("%+v, %v", h, err)
	}
	if !h.Offers(Request{Op: opEncode, Machine: codec.MachineZero32}) || h.Offers(Request{Op: opEncode, Machine: codec.MachineZero64}) ||
		h.Offers(Request{Op: opEnd}) {
		t.Error("offers are wrong")
	}
	for _, line := range []string{"", "hello", "hello btp=2 ops=decode", "hello btp=1", "hello btp=1 name=x", "hello btp=1 ops=",
		"hello btp=1 ops=decode machines=vax", "hello btp=1 ops=decode colour=red"} {
		if h, err := ParseHello(line); err == nil {
			t.Errorf("%q: accepted as %+v", line, h)
		}
	}
}
