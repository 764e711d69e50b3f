package device

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// The ~h# and ~e# lines that the library writes are those of the Go codec, and have the
// values that they were written with. The library does not read such lines: it is
// on devices, which write recordings.
func TestLines(t *testing.T) {
	each(t, func(t *testing.T, b build) {
		word := 64
		if b.word == "32" || b.word == "" && narrow(b.cc) {
			word = 32
		}
		l := &lines{Rand: rand.New(rand.NewPCG(5, uint64(word))), word: word}
		var requests strings.Builder
		for range 2000 {
			l.add(&requests)
		}
		argv := b.argv(b.make(t, "lines"))
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin = strings.NewReader(requests.String())
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if len(got) != len(l.checks) {
			t.Fatalf("%d lines, want %d", len(got), len(l.checks))
		}
		asked := strings.Split(requests.String(), "\n")
		for i, check := range l.checks {
			if err := check([]byte(got[i])); err != nil {
				t.Fatalf("%s: %v in\n%s", asked[i], err, got[i])
			}
		}
	})
}

// lines asks for random lines, and keeps a check of each.
type lines struct {
	*rand.Rand
	word   int
	checks []func(line []byte) error
}

// value returns a random value below 2^bits.
func (l *lines) value(bits int) uint64 {
	return l.Uint64() >> (64 - bits) >> l.IntN(bits)
}

// maybe returns a value or, at times, none.
func (l *lines) maybe(bits int) (v uint64, text string) {
	if l.IntN(4) == 0 {
		return 0, "-"
	}
	v = l.value(bits)
	return v, strconv.FormatUint(v, 10)
}

func (l *lines) add(requests *strings.Builder) {
	h := &codec.Header{}
	key := func(name string, bits int) string {
		_, text := l.maybe(bits)
		if text != "-" && name != "" {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: name, Value: text})
		}
		return text
	}
	text := func(name string) string {
		if l.IntN(4) == 0 {
			return "-"
		}
		s := make([]byte, 1+l.IntN(12))
		for i := range s {
			s[i] = byte(1 + l.IntN(255))
		}
		if name != "" {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: name, Value: string(s)})
		}
		return hex.EncodeToString(s)
	}
	switch l.IntN(6) {
	case 0:
		h.Verb = codec.VerbBoot
		prog, pid := text("prog"), key("pid", 63)
		h.Keys = append(h.Keys, codec.HeaderKey{Key: "w", Value: strconv.Itoa(l.word)})
		fmt.Fprintln(requests, "boot", prog, pid, key("epoch", 63))
	case 1:
		h.Verb = "map"
		fmt.Fprintln(requests, "map", key("t", 63))
	case 2:
		h.Verb = "lost"
		fmt.Fprintln(requests, "lost", key("n", 63))
	case 3:
		h.Verb, h.Number, h.HasNumber = codec.VerbBegin, uint32(l.value(32)), true
		t, n, b := key("t", 63), key("n", 63), key("b", 63)
		user := l.IntN(2)
		if user == 1 {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: "u", Value: "1"})
		}
		fmt.Fprintln(requests, "begin", h.Number, t, n, b, user, text("why"))
	case 4:
		h.Verb, h.Number, h.HasNumber = codec.VerbEnd, uint32(l.value(32)), true
		fmt.Fprintln(requests, "end", h.Number, key("", 63), key("n", 63), key("b", 63), l.IntN(2), text(""))
	default:
		l.event(requests)
		return
	}
	l.checks = append(l.checks, func(line []byte) error {
		if want, err := codec.AppendHeader(nil, h); err != nil || !bytes.Equal(line, want) {
			return fmt.Errorf("want\n%s", want)
		}
		var read codec.Header
		if err := codec.ParseHeader(&read, line); err != nil {
			return err
		}
		if read.Verb != h.Verb || read.Number != h.Number || !slices.Equal(read.Keys, h.Keys) {
			return fmt.Errorf("read as %+v", read)
		}
		return nil
	})
}

func (l *lines) event(requests *strings.Builder) {
	s := codec.Stack{Size: l.value(l.word)}
	kind := l.IntN(3)
	var want codec.User
	want.Set(codec.TagEvent, uint64(kind))
	address, old := l.value(63), l.value(63)
	want.Set(codec.TagAddress, address)
	if kind == 2 {
		want.Set(codec.TagOldAddress, old)
	}
	fmt.Fprint(requests, "event ", kind, " ", address, " ", old)
	for _, tag := range []codec.Tag{codec.TagTime, codec.TagThread, codec.TagSequence} {
		v, text := l.maybe(63)
		if text != "-" {
			want.Set(tag, v)
		}
		fmt.Fprint(requests, " ", text)
	}
	depth := l.IntN(32)
	fmt.Fprint(requests, " ", s.Size, " ", depth)
	for range depth {
		s.PCs = append(s.PCs, l.value(l.word))
		fmt.Fprint(requests, " ", s.PCs[len(s.PCs)-1])
	}
	fmt.Fprintln(requests)
	l.checks = append(l.checks, func(line []byte) error {
		blob, err := codec.ParseEventLine(nil, line)
		if err != nil {
			return err
		}
		var read codec.Stack
		var user codec.User
		if err := (codec.Decoder{Word: l.word}).DecodeEvent(&read, &user, blob); err != nil {
			return err
		}
		if read.Size != s.Size || !slices.Equal(read.PCs, s.PCs) || user != want {
			return fmt.Errorf("read as %+v, %+v", read, user)
		}
		return nil
	})
}
