package dump_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
)

// readme is the README's example; readmeSays what its addresses and size are.
const (
	readme     = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV"
	readmeSays = "size=7520 pcs=406651,406852,406c1b,406294"
)

// twoPads is a blob whose base64 needs two characters of padding, urlBlob one with
// '+' and '/' in it, tooDeep one over 184 characters.
var (
	twoPads = lineOf(codec.Stack{Size: 9, PCs: []uint64{0x10}})
	urlBlob = lineOf(codec.Stack{Size: 0xfbefbefbefbefbe, PCs: []uint64{0xffffffff}})
	tooDeep = lineOf(deepStack())
)

// deepStack has 31 frames so far from each other that each is a literal.
func deepStack() codec.Stack {
	s := codec.Stack{Size: 77}
	for n := range uint64(31) {
		s.PCs = append(s.PCs, (n+1)<<41|0x12345678)
	}
	return s
}

func lineOf(s codec.Stack) string {
	blob, err := codec.AppendBlob(nil, &s, codec.MachineExact64, codec.SearchLws)
	if err != nil {
		panic(err)
	}
	return string(codec.AppendLine(nil, blob))
}

func says(r *dump.Record) string {
	var pcs []string
	for _, pc := range r.Stack.PCs {
		pcs = append(pcs, fmt.Sprintf("%x", pc))
	}
	list := strings.Join(pcs, ",")
	if list == "" {
		list = "-"
	}
	switch {
	case r.Err == nil:
		return fmt.Sprintf("size=%d pcs=%s", r.Stack.Size, list)
	case r.Cut:
		return fmt.Sprintf("cut %d of %d pcs=%s", len(r.Stack.PCs), r.Depth, list)
	}
	return "reject " + string(r.Reason())
}

// event is a record or the text before one, as a test writes it.
type event struct{ text, rec, says string }

func scan(sc *dump.Scanner) (all []event) {
	var text bytes.Buffer
	sc.Text = &text
	for sc.Next() {
		if text.Len() > 0 {
			all = append(all, event{text: text.String()})
			text.Reset()
		}
		all = append(all, event{rec: string(sc.Record().Text), says: says(sc.Record())})
	}
	if text.Len() > 0 {
		all = append(all, event{text: text.String()})
	}
	return all
}

func text(s string) event      { return event{text: s} }
func rec(s, says string) event { return event{rec: s, says: says} }

var (
	ok      = rec(readme, readmeSays)
	two     = rec(twoPads, "size=9 pcs=10")
	unpad   = strings.TrimRight(twoPads, "=")
	urlText = strings.NewReplacer("+", "-", "/", "_").Replace(urlBlob)
	urlSays = fmt.Sprintf("size=%d pcs=ffffffff", uint64(0xfbefbefbefbefbe))
)

var logs = []struct {
	name string
	want []event
	bare bool
}{
	{name: "nothing", want: nil},
	{name: "no record, no line end", want: []event{text("hello")}},
	{name: "one record and nothing else", want: []event{ok}},
	{name: "one a line", want: []event{ok, text("\n"), two, text("\n")}},
	{name: "CRLF", want: []event{ok, text("\r\n"), two, text("\r\n")}},
	{name: "prefix and suffix", want: []event{text("[12:00:01.22] N: "), ok, text(" (heap)\n")}},
	{name: "colours", want: []event{text("\x1b[32m"), ok, text("\x1b[0m\n")}},
	{name: "NULs", want: []event{text("\x00\x00"), ok, text("\x00\n")}},
	{name: "several a line", want: []event{ok, text(" "), two, text(","), ok, two, text("\n")}},
	{name: "URL alphabet", want: []event{rec(urlText, urlSays), text("\n")}},
	{name: "padding missing", want: []event{rec(unpad, "size=9 pcs=10"), text("\n")}},
	{name: "padding missing at the end", want: []event{rec(unpad, "size=9 pcs=10")}},
	{name: "one of two = there", want: []event{rec(unpad+"=", "size=9 pcs=10"), text(" x")}},
	{name: "more padding than is due", want: []event{two, text("=\n")}},
	{name: "padding after a full group", want: []event{ok, text("=\n")}},
	{name: "text glued to padding", want: []event{two, text("freed\n")}},
	{name: "text glued to a full group", want: []event{ok, text("INFO: x\n")}},
	{name: "one character glued to a full group", want: []event{ok, text("X\n")}},
	{name: "minus glued to a full group", want: []event{ok, text("-freed\n")}},
	{name: "tildes", want: []event{text("~~~m~#~b ~m"), ok, text("~")}},
	{name: "tildes before a lead-in", want: []event{text("~"), ok, text("~~"), two, text("~m~b~"), ok, text("\n")}},
	{name: "lead-in twice", want: []event{rec("~m#", "reject short"), ok}},
	{name: "lead-in in prose", want: []event{text("grep '"), rec("~m#", "reject short"), text("' log\n")}},
	{name: "lead-in at the end", want: []event{text("x"), rec("~m#", "reject short")}},
	{name: "decoded lead-in at the end", want: []event{rec("~b#", "reject decoded-line")}},
	{name: "lead-in cut off at the end", want: []event{text("x~m")}},
	{name: "no room for metadata", want: []event{rec("~m#AAA=", "reject empty"), text("\n")}},
	{name: "cut, and another record in the line",
		want: []event{rec(readme[:20], "cut 2 of 4 pcs=406651,406852"), ok}},
	{name: "cut in the first frame", want: []event{rec(readme[:7], "reject length"), text("\n")}},
	{name: "cut between groups", want: []event{rec(readme[:3+16], "cut 2 of 4 pcs=406651,406852"), text("\n")}},
	{name: "interleaved by other text",
		want: []event{rec(readme[:20], "cut 2 of 4 pcs=406651,406852"), text("[   1.2] eth0: up\n"), ok, text("\n")}},
	{name: "delta first", want: []event{rec("~m#CgAAAAU=", "reject delta-first"), text("\n")}},
	{name: "decoded", want: []event{rec("~b#size: 7520, 0x406651 0x406852 0x406c1b 0x406294", readmeSays), text("\n")}},
	{name: "decoded, as lws's tool ends it", want: []event{rec("~b#size: 16, 0x10", "size=16 pcs=10"), text(" \n")}},
	{name: "decoded, empty", want: []event{rec("~b#size: 16,", "size=16 pcs=-"), text("\n")}},
	{name: "decoded, text after it", want: []event{rec("~b#size: 16, 0x10", "size=16 pcs=10"), text(" took 3 ms\n")}},
	{name: "decoded, cut in the size", want: []event{rec("~b#size: 16", "reject decoded-line"), text("\n")}},
	{name: "decoded, cut before an address", want: []event{rec("~b#size: 16,", "reject decoded-line"), text(" 0x\n")}},
	{name: "decoded, both kinds", want: []event{rec("~b#size: 16, 0x10", "size=16 pcs=10"), ok, text("\n")}},
	{name: "decoded, no space", want: []event{rec("~b#size:", "reject decoded-line"), text("16, 0x10\n")}},
	{name: "decoded, 33 addresses",
		want: []event{rec("~b#size: 16,"+strings.Repeat(" 0x1", 32), "reject decoded-line"), text(" 0x1\n")}},
	{name: "decoded, an address of 17 digits",
		want: []event{rec("~b#size: 16, 0x1", "reject decoded-line"), text(" 0x10000000000000000\n")}},
	{name: "decoded, leading zeros", want: []event{rec("~b#size: 16, 0x00000000000000010", "size=16 pcs=10"), text("\n")}},
	{name: "decoded, cut in a number", want: []event{rec("~b#size: 16, 0x10", "size=16 pcs=10")}},
	{name: "decoded, endless", want: []event{
		rec("~b#size: "+strings.Repeat("1", 4096-9), "reject too-long"), text("11111\n"), ok}},
	{name: "more base64 than a blob has", want: []event{
		rec("~m#"+strings.Repeat("A", 87380), "reject too-long"), text(strings.Repeat("A", 99000) + "\n"), ok}},
	{name: "a line longer than the buffer",
		want: []event{text(strings.Repeat("=", 700_001)), ok, text(strings.Repeat("~", 300_000)), two, text("\n"), ok}},
	{name: "bare not asked for", want: []event{text(readme[3:] + "\n")}},
	{name: "bare", bare: true,
		want: []event{rec(readme[3:], readmeSays), text("\n"), rec(unpad[3:], "size=9 pcs=10"), text("\r\n  "),
			rec(urlText[3:], urlSays), text(" \t\r\n\nan ordinary line\n"), two, text("\n"), rec(readme[3:], readmeSays)}},
	{name: "bare, not at a line's start", bare: true, want: []event{text("x: " + readme[3:] + "\n")}},
	{name: "bare, more in the line", bare: true, want: []event{text(readme[3:] + " x\n")}},
	{name: "bare, another word", bare: true, want: []event{rec("started", "reject base64"), text("\n"), text("go\n")}},
	{name: "bare, a lead-in inside the line", bare: true, want: []event{text("x "), ok, text("\n~\n~m\n"), ok}},
	{name: "bare, a line too long to be one", bare: true,
		want: []event{text(strings.Repeat("A", 400_000) + "\n"), rec(readme[3:], readmeSays), text("\n")}},
}

func whole(events []event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.text + e.rec)
	}
	return b.String()
}

// merged joins neighbouring texts, of which a test may write several.
func merged(events []event) (out []event) {
	for _, e := range events {
		if n := len(out); n > 0 && e.rec == "" && out[n-1].rec == "" {
			out[n-1].text += e.text
			continue
		}
		out = append(out, e)
	}
	return out
}

func TestLogs(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"whole":       func(r io.Reader) io.Reader { return r },
		"end at once": iotest.DataErrReader,
		"halves":      iotest.HalfReader,
		"pieces":      func(r io.Reader) io.Reader { return &pieces{r, rand.New(rand.NewPCG(1, 2))} },
		"bytes":       iotest.OneByteReader,
	}
	for _, l := range logs {
		log := whole(l.want)
		for name, wrap := range readers {
			if name == "bytes" && len(log) > 20_000 {
				continue // its record is looked at anew with each byte
			}
			sc := dump.NewScanner(wrap(strings.NewReader(log)), "log")
			sc.Bare = l.bare
			got, want := scan(sc), merged(l.want)
			if err := sc.Err(); err != nil {
				t.Errorf("%s, read by %s: %v", l.name, name, err)
			}
			for i := range max(len(got), len(want)) {
				var g, w event
				if i < len(got) {
					g = got[i]
				}
				if i < len(want) {
					w = want[i]
				}
				if g != w {
					t.Errorf("%s, read by %s, event %d:\n got %.300q\nwant %.300q", l.name, name, i, g, w)
					break
				}
			}
		}
	}
}

// pieces reads a few bytes at a time, or many.
type pieces struct {
	r   io.Reader
	rnd *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.rnd.IntN(1<<p.rnd.IntN(18)))])
}

// What lws prints of a blob over 138 bytes: 184 characters, up to three of rubbish.
func TestCutByLws(t *testing.T) {
	if len(tooDeep) <= 3+187 {
		t.Fatalf("the example has %d characters, expected over 190", len(tooDeep))
	}
	// A literal takes 10 bits and its value: 52, then 2 of 53, 4 of 54, 8 of 55, and of
	// the 1104 bits in 184 characters, less 6 for the depth, there are 284 left for 5
	// more of 56.
	const depth, whole = 31, 1 + 2 + 4 + 8 + 5
	for _, rubbish := range []string{"", "A", "\x01\x02", "Az9", "?"} {
		sc := dump.NewScanner(strings.NewReader(tooDeep[:3+184]+rubbish+"\n"), "log")
		if !sc.Next() {
			t.Fatalf("rubbish %q: no record", rubbish)
		}
		r := sc.Record()
		if !r.Cut || !r.CutByLws || r.Sized || r.Depth != depth || r.Reason() != codec.ReasonLength {
			t.Errorf("rubbish %q: got cut=%v by lws=%v sized=%v depth=%d %v", rubbish, r.Cut, r.CutByLws, r.Sized, r.Depth, r.Err)
		}
		if n := len(r.Stack.PCs); n != whole {
			t.Errorf("rubbish %q: %d whole frames, want %d", rubbish, n, whole)
		}
		for i, pc := range r.Stack.PCs {
			if want := deepStack().PCs[i]; pc != want {
				t.Errorf("rubbish %q: frame %d is %#x, want %#x", rubbish, i, pc, want)
			}
		}
		if got := sc.Tally(); got.Cut != 1 || got.CutByLws != 1 || got.Read != 0 || got.Unreadable != 0 {
			t.Errorf("rubbish %q: tally %+v", rubbish, got)
		}
	}
	// One character short of lws's cut is a cut of another's.
	sc := dump.NewScanner(strings.NewReader(tooDeep[:3+183]+"\n"), "log")
	if !sc.Next() || !sc.Record().Cut || sc.Record().CutByLws {
		t.Errorf("183 characters: got %+v", sc.Record())
	}
	// Uncut, it is a record like any other.
	sc = dump.NewScanner(strings.NewReader(tooDeep+"\n"), "log")
	if !sc.Next() || sc.Record().Err != nil || len(sc.Record().Stack.PCs) != depth {
		t.Errorf("uncut: got %+v", sc.Record())
	}
}

func TestTally(t *testing.T) {
	log := "a\n" + readme + "\n\n" + urlText + " ~m#AAA=\n" + // lines 2, 4
		strings.Repeat("~m#!\n", 5) + // lines 5 to 9
		"x ~b#size: 1, 0x2\n" + readme[:20] + "\n~m#CgAAAAU=" // lines 10, 11, 12
	sc := dump.NewScanner(strings.NewReader(log), "first.log")
	for sc.Next() {
	}
	sc.Reset(strings.NewReader("\n\n"+readme+"\n~m#?"), "second.log")
	for sc.Next() {
	}
	got := sc.Tally()
	if got.Bytes != int64(len(log)+2+len(readme)+1+4) || got.Lines != 12+4 {
		t.Errorf("%d bytes, %d lines", got.Bytes, got.Lines)
	}
	if got.Read != 4 || got.ByKind != [...]int64{3, 1, 0, 0, 0} || got.Lenient != 1 || got.Cut != 1 || got.CutByLws != 0 || got.Unreadable != 8 {
		t.Errorf("tally %+v", *got)
	}
	var faults []string
	for _, f := range got.Faults() {
		for i, p := range f.Places {
			faults = append(faults, fmt.Sprintf("%s %d %v", f.Reason, f.Count, p))
			if f.Errs[i] == nil {
				t.Errorf("%v at %v: no error", f.Reason, p)
			}
		}
	}
	at := func(s string) int { return strings.Index(log, s) }
	want := []string{
		fmt.Sprintf("short 6 first.log:5 (offset %d)", at("~m#!")),
		fmt.Sprintf("short 6 first.log:6 (offset %d)", at("~m#!")+5),
		fmt.Sprintf("short 6 first.log:7 (offset %d)", at("~m#!")+10),
		fmt.Sprintf("delta-first 1 first.log:12 (offset %d)", at("~m#Cg")),
		fmt.Sprintf("empty 1 first.log:4 (offset %d)", at("~m#AAA=")),
	}
	if strings.Join(faults, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(faults, "\n"), strings.Join(want, "\n"))
	}
	if c := got.Cuts(); c.Count != 1 || c.Places[0].Line != 11 {
		t.Errorf("cuts %+v", c)
	}
}

// Whatever the bytes, text and records together are the log, and each record is
// where its place says.
func TestEveryByteOnce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	parts := []string{readme, twoPads, urlText, tooDeep, tooDeep[:187], "~m#", "~b#size: ", "12, 0x", "~", "\n", "\r\n",
		" ", "A", "==", "\x00", "\x1b[0m", "text", "~b#size: 1, 0x2 0x3"}
	for range 3000 {
		var log []byte
		for range rnd.IntN(40) {
			p := parts[rnd.IntN(len(parts))]
			log = append(log, p[:len(p)-rnd.IntN(2)*rnd.IntN(len(p))]...)
		}
		for _, bare := range []bool{false, true} {
			var text, all bytes.Buffer
			sc := dump.NewScanner(&pieces{bytes.NewReader(log), rnd}, "log")
			sc.Text, sc.Bare = &text, bare
			for sc.Next() {
				r := sc.Record()
				all.Write(text.Bytes())
				text.Reset()
				if int64(all.Len()) != r.Offset || int64(1+bytes.Count(log[:r.Offset], []byte("\n"))) != r.Line {
					t.Fatalf("log %q: %q is said to be at %v, is at offset %d", log, r.Text, r.Place, all.Len())
				}
				all.Write(r.Text)
			}
			all.Write(text.Bytes())
			if !bytes.Equal(all.Bytes(), log) {
				t.Fatalf("bare=%v\n log %q\n got %q", bare, log, all.Bytes())
			}
		}
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	sc := dump.NewScanner(io.MultiReader(strings.NewReader("x"+readme), iotest.ErrReader(broken)), "log")
	if got := scan(sc); len(got) != 2 || got[1] != ok {
		t.Errorf("before the error: got %q", got)
	}
	if !errors.Is(sc.Err(), broken) || sc.Next() {
		t.Errorf("got error %v", sc.Err())
	}
	sc = dump.NewScanner(strings.NewReader("x "+readme+" y"+readme), "log")
	sc.Text = failing{}
	if sc.Next() || sc.Err() == nil {
		t.Errorf("writing to Text failed: got %q, error %v", sc.Record().Text, sc.Err())
	}
	sc = dump.NewScanner(stuck{}, "log")
	if sc.Next() || !errors.Is(sc.Err(), io.ErrNoProgress) {
		t.Errorf("reader without progress: error %v", sc.Err())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// Marks and events of a recording are records where they are asked for, and text
// where they are not.
func TestRecordings(t *testing.T) {
	event := &codec.User{}
	event.Set(codec.TagEvent, codec.EventAllocated)
	event.Set(codec.TagAddress, 0x3ffb1000)
	event.Set(codec.TagTime, 99)
	blob, err := codec.AppendBlobUser(nil, &codec.Stack{Size: 8, PCs: []uint64{0x400d1234}}, event, codec.MachineExact32, codec.SearchLws)
	if err != nil {
		t.Fatal(err)
	}
	live := &codec.User{}
	live.Set(codec.TagAddress, 0x3ffb2000)
	withUser, err := codec.AppendBlobUser(nil, &codec.Stack{Size: 5, PCs: []uint64{0x400d1234}}, live, codec.MachineExact32, codec.SearchLws)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{
		"I (12) ", "~h#boot prog=a%20b w=32", "\n", string(codec.AppendEventLine(nil, blob)), "\r\n\x1b[0m", "~h#begin 3 u=1", "\x1b[0m\n",
		string(codec.AppendLine(nil, withUser)), "\n", "~h#end 3", "\n", readme, "\n~h", "~e#AAA", "\n", "~h#begin x", "\n", "~h#boot",
	}
	log := strings.Join(parts, "")
	for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		sc := dump.NewScanner(wrap(strings.NewReader(log)), "log")
		var text strings.Builder
		sc.Text, sc.Recordings = &text, true
		var got []string
		for sc.Next() {
			r := sc.Record()
			text.Write(r.Text)
			at, _ := r.User.Get(codec.TagAddress)
			what := fmt.Sprintf("%v %s%d %d %#x", r.Kind, r.Header.Verb, r.Header.Number, r.Stack.Size, at)
			if r.Kind != dump.Header {
				what = fmt.Sprintf("%v %d %#x", r.Kind, r.Stack.Size, at)
			}
			if r.Err != nil {
				what = fmt.Sprintf("%v %s", r.Kind, r.Reason())
			}
			got = append(got, what)
		}
		want := []string{"~h# boot0 0 0x0", "~e# 8 0x3ffb1000", "~h# begin3 0 0x0", "~m# 5 0x3ffb2000", "~h# end3 0 0x0", "~m# 7520 0x0",
			"~e# empty", "~h# header-line", "~h# boot0 0 0x0"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || text.String() != log {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if tally := sc.Tally(); tally.Read != 3 || tally.ByKind[dump.Header] != 4 || tally.Unreadable != 2 {
			t.Errorf("tally %+v", tally)
		}
	}
	sc := dump.NewScanner(strings.NewReader(log), "log")
	n := 0
	for sc.Next() {
		n++
	}
	if n != 2 {
		t.Errorf("%d records where recordings are not asked for, want the two ~m#", n)
	}
}

// What headers say of the records that follow: their word, and whether they have user
// fields.
func TestHeadersBeforeRecords(t *testing.T) {
	var u codec.User
	u.Set(codec.TagAddress, 0x10)
	blob, err := codec.AppendBlobUser(nil, &codec.Stack{Size: 5}, &u, codec.MachineExact64, codec.SearchLws)
	if err != nil {
		t.Fatal(err)
	}
	record := string(codec.AppendLine(nil, blob)) + "\n"
	wide := lineOf(codec.Stack{PCs: []uint64{1 << 32}}) + "\n"
	for _, tt := range []struct {
		before string
		user   bool
	}{
		{"", false},
		{"~h#begin 0\n", false},
		{"~h#begin 0 u=1\n", true},
		{"~h#begin 0 u=01\n", true},
		{"~h#begin 0 u=%31\n", true},
		{"~h#begin 0 u=0\n", false},
		{"~h#begin 0 u=2\n", false},
		{"~h#begin 0 u=1 u=0\n", true},
		{"~h#begin 0 u=0 u=1\n", false},
		{"~h#begin 0 u=1\n~h#end 0\n", false},
		{"~h#begin 0 u=1\n~h#end 7\n", false},
		{"~h#begin 0 u=1\n~h#begin 1\n", false},
		{"~h#begin 0 u=1\n~h#boot\n", false},
		{"~h#begin 0 u=1\n~h#map\n~h#load\n~h#lost n=1\n~h#total\n", true},
		{"~h#begin 0 u=1\n~h#Map\n", true},
		{"~h#begin 0 u=1~h#map t=5", true},
	} {
		sc := dump.NewScanner(strings.NewReader(tt.before+record), "log")
		sc.Recordings = true
		var last *dump.Record
		for sc.Next() {
			last = sc.Record()
		}
		if _, ok := last.User.Get(codec.TagAddress); last.Kind != dump.Blob || ok != tt.user {
			t.Errorf("%q: user fields %v, want %v", tt.before, ok, tt.user)
		}
	}
	for before, rejected := range map[string]bool{
		"":                                false,
		"~h#boot\n":                       false,
		"~h#boot w=32\n":                  true,
		"~h#boot w=032\n":                 true,
		"~h#boot w=64\n":                  false,
		"~h#boot w=32\n~h#boot\n":         false,
		"~h#boot w=32\n~h#begin 0 w=64\n": true,
		"~h#boot w=32\n" + wide + "~h#boot w=64\n" + wide: false,
		wide + wide + "~h#boot w=32\n":                    true,
	} {
		for _, memo := range []bool{false, true} {
			sc := dump.NewScanner(strings.NewReader(before+wide), "log")
			sc.Recordings = true
			if memo {
				sc.Remember(nil, nil)
			}
			var last dump.Record
			for sc.Next() {
				last = *sc.Record()
			}
			if got := last.Reason() == codec.ReasonCount; got != rejected {
				t.Errorf("%q, memo %v: %v, want rejected for its count: %v", before, memo, last.Err, rejected)
			}
		}
	}
}

// ~b# and ~h# lines of 4,095 bytes are read. (BT-LIM-4)
func TestLongLines(t *testing.T) {
	for _, tt := range []struct{ head, fill, tail string }{
		{"~h#boot prog=", "x", ""},
		{"~h#map t=", "0", "5"},
		{"~b#size: ", "0", "5, 0x10"},
		{"~b#size: 5, 0x", "0", "10"},
	} {
		for _, length := range []int{4095, 4097, 9000} {
			line := tt.head + strings.Repeat(tt.fill, length-len(tt.head)-len(tt.tail)) + tt.tail
			sc := dump.NewScanner(strings.NewReader(line+"\n~m#ABAABA==\n"), "log")
			sc.Recordings = true
			if !sc.Next() || (sc.Record().Err == nil) != (length == 4095) || length == 4095 && string(sc.Record().Text) != line {
				t.Errorf("%s… of %d bytes: %v", tt.head, length, sc.Record().Err)
			}
			for sc.Next() {
			}
			if r := sc.Record(); r.Kind != dump.Blob || r.Err != nil {
				t.Errorf("%s… of %d bytes: the record behind it is lost: %v", tt.head, length, r.Err)
			}
		}
	}
}
