package heaplog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
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
	blob, err := codec.Encoder{}.AppendBlob(nil, &s, nil)
	if err != nil {
		panic(err)
	}
	return string(codec.AppendLine(nil, blob))
}

func says(it *heaplog.Item) string {
	var pcs []string
	if it.Stack != nil {
		for _, pc := range it.Stack.PCs {
			pcs = append(pcs, fmt.Sprintf("%x", pc))
		}
	}
	list := strings.Join(pcs, ",")
	if list == "" {
		list = "-"
	}
	switch {
	case it.Err == nil:
		return fmt.Sprintf("size=%d pcs=%s", it.Stack.Size, list)
	case it.Cut != nil:
		return fmt.Sprintf("cut %d of %d pcs=%s", len(it.Stack.PCs), it.Cut.Depth, list)
	}
	return "reject " + string(it.Reason())
}

// event is a record or the text before one, as a test writes it.
type event struct{ text, rec, says string }

// open opens a log that r holds.
func open(t testing.TB, r io.Reader, options ...heaplog.Option) *heaplog.Reader {
	t.Helper()
	log, err := heaplog.Open(t.Context(), append(options, heaplog.Stream(r, "log"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// scan returns all records, and the text before each as one.
func scan(r *heaplog.Reader) (all []event, err error) {
	text := ""
	flush := func() {
		if text != "" {
			all = append(all, event{text: text})
			text = ""
		}
	}
	for it, e := range r.Items() {
		switch {
		case e != nil:
			if !errors.Is(e, heaplog.ErrNoRecord) {
				err = e
			}
		case it.Kind == recording.KindText, it.Kind == recording.KindIdle:
			text += string(it.Text)
		default:
			flush()
			all = append(all, event{rec: string(it.Text), says: says(it)})
		}
	}
	flush()
	return all, err
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
	{name: "decoded, cut before an address", want: []event{rec("~b#size: 16,", "cut 0 of 1 pcs=-"), text(" 0x\n")}},
	{name: "decoded, both kinds", want: []event{rec("~b#size: 16, 0x10", "size=16 pcs=10"), ok, text("\n")}},
	{name: "decoded, no space", want: []event{rec("~b#size:", "reject decoded-line"), text("16, 0x10\n")}},
	{name: "decoded, 33 addresses",
		want: []event{rec("~b#size: 16,"+strings.Repeat(" 0x1", 32), "cut 32 of 33 pcs=1"+strings.Repeat(",1", 31)), text(" 0x1\n")}},
	{name: "decoded, an address of 17 digits",
		want: []event{rec("~b#size: 16, 0x1", "cut 1 of 2 pcs=1"), text(" 0x10000000000000000\n")}},
	{name: "decoded, leading zeros", want: []event{rec("~b#size: 16, 0x00000000000000010", "size=16 pcs=10"), text("\n")}},
	{name: "decoded, cut in a number", want: []event{rec("~b#size: 16, 0x10", "size=16 pcs=10")}},
	{name: "decoded, endless", want: []event{
		rec("~b#size: "+strings.Repeat("1", 4096-9), "reject too-long"), text("11111\n"), ok}},
	{name: "more base64 than a blob has", want: []event{
		rec("~m#"+strings.Repeat("A", 87380), "reject too-long"), text(strings.Repeat("A", 99000) + "\n"), ok}},
	{name: "a line longer than the buffer",
		want: []event{text(strings.Repeat("=", 700_001)), ok, text(strings.Repeat("~", 300_000)), two, text("\n"), ok}},
	{name: "no lead-in", want: []event{text(readme[3:] + "\n")}},
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
			got, err := scan(open(t, wrap(strings.NewReader(log))))
			want := merged(l.want)
			if err != nil {
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
	read := func(text string) (first heaplog.Item, pcs []uint64, s heaplog.Summary) {
		r := open(t, strings.NewReader(text+"\n"))
		for it := range r.Items() {
			if it != nil && it.Kind != recording.KindText {
				first, pcs = *it, slices.Clone(it.Stack.PCs)
				break
			}
		}
		return first, pcs, r.Summary()
	}
	for _, rubbish := range []string{"", "A", "\x01\x02", "Az9", "?"} {
		it, pcs, sum := read(tooDeep[:3+184] + rubbish)
		if c := it.Cut; c == nil || !c.ByLws || c.Sized || c.Depth != depth || it.Reason() != "length" {
			t.Errorf("rubbish %q: got %+v, %v", rubbish, c, it.Err)
		}
		if n := len(pcs); n != whole {
			t.Errorf("rubbish %q: %d whole frames, want %d", rubbish, n, whole)
		}
		for i, pc := range pcs {
			if want := deepStack().PCs[i]; pc != want {
				t.Errorf("rubbish %q: frame %d is %#x, want %#x", rubbish, i, pc, want)
			}
		}
		if sum.Cut != 1 || sum.CutByLws != 1 || sum.Records[recording.KindBlob] != 0 || sum.Records[recording.KindUnreadable] != 0 {
			t.Errorf("rubbish %q: summary %+v", rubbish, sum)
		}
	}
	// One character short of lws's cut is a cut of another's.
	if it, _, _ := read(tooDeep[:3+183]); it.Cut == nil || it.Cut.ByLws {
		t.Errorf("183 characters: got %+v", it)
	}
	// Uncut, it is a record like any other.
	if it, pcs, _ := read(tooDeep); it.Err != nil || len(pcs) != depth {
		t.Errorf("uncut: got %+v", it)
	}
}

func TestTally(t *testing.T) {
	log := "a\n" + readme + "\n\n" + urlText + " ~m#AAA=\n" + // lines 2, 4
		strings.Repeat("~m#!\n", 5) + // lines 5 to 9
		"x ~b#size: 1, 0x2\n" + readme[:20] + "\n~m#CgAAAAU=" // lines 10, 11, 12
	second := "\n\n" + readme + "\n~m#?"
	r, err := heaplog.Open(t.Context(), heaplog.Stream(strings.NewReader(log), "first.log"), heaplog.Stream(strings.NewReader(second), "second.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := scan(r); err != nil {
		t.Fatal(err)
	}
	got := r.Summary()
	if got.Bytes != int64(len(log)+len(second)) || got.Lines != 12+4 || got.Stored != got.Bytes || got.At.File != "second.log" {
		t.Errorf("%d bytes, %d lines, %d stored, at %v", got.Bytes, got.Lines, got.Stored, got.At)
	}
	if got.Records[recording.KindBlob] != 3 || got.Records[recording.KindDecoded] != 1 || got.Lenient != 1 || got.Cut != 1 || got.CutByLws != 0 ||
		got.Records[recording.KindUnreadable] != 8 || got.Readable() != 5 {
		t.Errorf("summary %+v", got)
	}
	var faults []string
	for _, f := range got.Faults {
		for i, p := range f.Places {
			faults = append(faults, fmt.Sprintf("%s %v %d %v", f.Reason, f.Cut, f.Count, p))
			if f.Errs[i] == nil {
				t.Errorf("%v at %v: no error", f.Reason, p)
			}
		}
	}
	at := func(s string) int { return strings.Index(log, s) }
	want := []string{
		fmt.Sprintf("short false 6 first.log:5 (offset %d)", at("~m#!")),
		fmt.Sprintf("short false 6 first.log:6 (offset %d)", at("~m#!")+5),
		fmt.Sprintf("short false 6 first.log:7 (offset %d)", at("~m#!")+10),
		fmt.Sprintf("base64 true 1 first.log:11 (offset %d)", at(readme[:20]+"\n~")), // 17 characters
		fmt.Sprintf("delta-first false 1 first.log:12 (offset %d)", at("~m#Cg")),
		fmt.Sprintf("empty false 1 first.log:4 (offset %d)", at("~m#AAA=")),
	}
	if strings.Join(faults, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(faults, "\n"), strings.Join(want, "\n"))
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
		var all bytes.Buffer
		r, err := heaplog.Open(t.Context(), heaplog.Unnamed(), heaplog.Stream(&pieces{bytes.NewReader(log), rnd}, "log"))
		if err != nil {
			t.Fatal(err)
		}
		for it, err := range r.Items() {
			if err != nil {
				continue // no record
			}
			if int64(all.Len()) != it.Offset || int64(1+bytes.Count(log[:it.Offset], []byte("\n"))) != it.Line {
				t.Fatalf("log %q: %q is said to be at %v, is at offset %d", log, it.Text, it.Place, all.Len())
			}
			all.Write(it.Text)
		}
		r.Close() // at the end of the test, all of them would take gigabytes
		if !bytes.Equal(all.Bytes(), log) {
			t.Fatalf("log %q\n got %q", log, all.Bytes())
		}
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	got, err := scan(open(t, io.MultiReader(strings.NewReader("x"+readme), iotest.ErrReader(broken))))
	if len(got) != 2 || got[1] != ok {
		t.Errorf("before the error: got %q", got)
	}
	var read *heaplog.ReadError
	if !errors.Is(err, broken) || !errors.As(err, &read) || read.Name != "log" {
		t.Errorf("got error %v", err)
	}
	if _, err := scan(open(t, stuck{})); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader without progress: error %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// Marks and events of a recording are items of their own.
func TestRecordings(t *testing.T) {
	event := &codec.User{}
	event.Set(codec.TagEvent, codec.EventAllocated)
	event.Set(codec.TagAddress, 0x3ffb1000)
	event.Set(codec.TagTime, 99)
	blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{Size: 8, PCs: []uint64{0x400d1234}}, event)
	if err != nil {
		t.Fatal(err)
	}
	live := &codec.User{}
	live.Set(codec.TagAddress, 0x3ffb2000)
	withUser, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{Size: 5, PCs: []uint64{0x400d1234}}, live)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{
		"I (12) ", "~h#boot prog=a%20b w=32", "\n", string(codec.AppendEventLine(nil, blob)), "\r\n\x1b[0m", "~h#begin 3 u=1", "\x1b[0m\n",
		string(codec.AppendLine(nil, withUser)), "\n", "~h#end 3", "\n", readme, "\n~h", "~e#AAA", "\n", "~h#begin x", "\n", "~h#boot",
	}
	log := strings.Join(parts, "")
	for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		r := open(t, wrap(strings.NewReader(log)))
		var text strings.Builder
		var got []string
		for it, err := range r.Items() {
			if err != nil {
				t.Fatal(err)
			}
			text.Write(it.Text)
			at := uint64(0)
			if it.User != nil {
				at, _ = it.User.Get(codec.TagAddress)
			}
			switch it.Kind {
			case recording.KindText, recording.KindIdle:
			case recording.KindHeader:
				got = append(got, fmt.Sprintf("%v %s %d", it.Kind, it.Header.Verb, it.Header.Number))
			case recording.KindUnreadable:
				got = append(got, fmt.Sprintf("%v %s", it.Kind, it.Reason()))
			default:
				got = append(got, fmt.Sprintf("%v %d %#x", it.Kind, it.Allocs[0].Bytes, at))
			}
		}
		want := []string{"~h# boot 0", "~e# 8 0x3ffb1000", "~h# begin 3", "~m# 5 0x3ffb2000", "~h# end 3", "~m# 7520 0x0",
			"unreadable empty", "unreadable header-line", "~h# boot 0"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || text.String() != log {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if s := r.Summary(); s.Readable() != 3 || s.Records[recording.KindHeader] != 4 || s.Records[recording.KindUnreadable] != 2 {
			t.Errorf("summary %+v", s)
		}
	}
}

// What headers say of the records that follow: their word, and whether they have user
// fields.
func TestHeadersBeforeRecords(t *testing.T) {
	var u codec.User
	u.Set(codec.TagAddress, 0x10)
	blob, err := codec.Encoder{}.AppendBlob(nil, &codec.Stack{Size: 5}, &u)
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
		kind, user := recording.KindText, false
		for it, err := range open(t, strings.NewReader(tt.before+record)).Items() {
			if err == nil && it.Kind != recording.KindText {
				kind, user = it.Kind, it.User != nil
			}
		}
		if kind != recording.KindBlob || user != tt.user {
			t.Errorf("%q: a %v, user fields %v, want %v", tt.before, kind, user, tt.user)
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
		var last error
		for it, err := range open(t, strings.NewReader(before+wide)).Items() {
			if err == nil && it.Kind != recording.KindText {
				last = it.Err
			}
		}
		var e *codec.Error
		if got := errors.As(last, &e) && e.Reason == "count"; got != rejected {
			t.Errorf("%q: %v, want rejected for its count: %v", before, last, rejected)
		}
	}
}

// What stands behind a ~b# or ~h# of 4,095 bytes does not matter. (BT-LIM-4)
func TestLongLinesBefore(t *testing.T) {
	for _, tt := range []struct{ head, fill, tail, after string }{
		{"~h#boot prog=", "x", "", "~m#ABAABA==\n"},
		{"~h#boot prog=", "x", "", "~b#size: 5,\n"},
		{"~h#boot prog=", "x", "", ""},
		{"~h#boot prog=", "x", "y", " \n"}, // the space counts
		{"~b#size: 5, 0x", "0", "10", " x"},
		{"~b#size: 5, 0x", "0", "10", " 0x\n"}, // an address is missing
		{"~b#size: 5, 0x", "0", "10", "~m#ABAABA==\n"},
		{"~b#size: ", "0", "5,", ""},
	} {
		line := tt.head + strings.Repeat(tt.fill, 4095-len(tt.head)-len(tt.tail)-strings.Count(tt.tail, "y")) + tt.tail
		var list []heaplog.Item // records, and what could not be read
		for it, err := range open(t, strings.NewReader(line+tt.after)).Items() {
			if err != nil && !errors.Is(err, heaplog.ErrNoRecord) {
				t.Fatal(err)
			}
			if err == nil && it.Kind != recording.KindText {
				list = append(list, *it)
				list[len(list)-1].Text = bytes.Clone(it.Text)
			}
		}
		want := 1
		if strings.HasPrefix(tt.after, "~") {
			want = 2
		}
		if len(list) != want {
			t.Errorf("%s… before %q: %d records, want %d", tt.head, tt.after, len(list), want)
			continue
		}
		it, cut := list[0], strings.HasPrefix(tt.after, " 0x")
		if (it.Err != nil) != cut || string(it.Text) != line {
			t.Errorf("%s… before %q: %d bytes, %v", tt.head, tt.after, len(it.Text), it.Err)
		}
		if reason := it.Reason(); cut && reason != "decoded-line" {
			t.Errorf("%s… before %q: %q, want %s", tt.head, tt.after, reason, "decoded-line")
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
			n, last := 0, recording.KindText
			for it, err := range open(t, strings.NewReader(line+"\n~m#ABAABA==\n")).Items() {
				if err != nil {
					t.Fatal(err)
				}
				if it.Kind == recording.KindText {
					continue
				}
				if n++; n == 1 && ((it.Err == nil) != (length == 4095) || length == 4095 && string(it.Text) != line) {
					t.Errorf("%s… of %d bytes: %v", tt.head, length, it.Err)
				}
				last = it.Kind
			}
			if last != recording.KindBlob {
				t.Errorf("%s… of %d bytes: the record behind it is lost", tt.head, length)
			}
		}
	}
}
