package dump_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
)

// A scanner that remembers records says what one says that does not.
func TestRememberChangesNothing(t *testing.T) {
	var logs []string
	for _, name := range []string{"serial.log", "captures/perl.log.gz", "captures/lws-dump-pie.log"} {
		in, err := dump.Open("../corpus/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, strings.Repeat(string(text), 3))
	}
	rng := rand.New(rand.NewPCG(5, 6))
	parts := []string{readme, twoPads, urlText, tooDeep, unpad, readme[:20], "~b#size: 1, 0x2", "~h#begin 1 u=1\n", "~h#end 1\n", " tail", "\n", "\r\n"}
	for range 300 {
		var b strings.Builder
		for range 60 {
			b.WriteString(parts[rng.IntN(len(parts))])
			if rng.IntN(2) == 0 {
				b.WriteByte('\n')
			}
		}
		logs = append(logs, b.String())
	}
	again := 0
	for i, log := range logs {
		plain, memo := dump.NewScanner(strings.NewReader(log), "x"), dump.NewScanner(&pieces{strings.NewReader(log), rng}, "x")
		var text [2]strings.Builder
		plain.Text, memo.Text = &text[0], &text[1]
		plain.Recordings, memo.Recordings = true, true
		memo.Remember(nil, nil)
		seen := map[uint64]string{}
		for plain.Next() {
			if !memo.Next() {
				t.Fatalf("log %d: records are missing", i)
			}
			a, b := *plain.Record(), *memo.Record()
			if b.Memo != 0 {
				if was, ok := seen[b.Memo]; ok && was != string(b.Text) {
					t.Fatalf("log %d: one number for %q and %q", i, was, b.Text)
				}
				if seen[b.Memo] != "" {
					again++
				}
				seen[b.Memo] = string(b.Text)
			}
			b.Memo = 0
			if fmt.Sprint(a.Err) != fmt.Sprint(b.Err) {
				t.Fatalf("log %d: %v and %v", i, a.Err, b.Err)
			}
			a.Err, b.Err = nil, nil
			if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
				t.Fatalf("log %d:\n%+v\n%+v", i, a, b)
			}
		}
		if memo.Next() || text[0].String() != text[1].String() || !reflect.DeepEqual(plain.Tally().ByKind, memo.Tally().ByKind) {
			t.Fatalf("log %d: more records, or other text", i)
		}
	}
	if again < 1000 {
		t.Errorf("only %d records came from memory", again)
	}
}

// Where hardly any record is repeated, a scanner stops looking for them; later it does again.
func TestRememberWhereItHelps(t *testing.T) {
	var log []byte
	var blob []byte
	add := func(size uint64) {
		blob, _ = codec.AppendBlob(blob[:0], &codec.Stack{PCs: []uint64{0x401000}, Size: size}, codec.MachineExact64, codec.SearchLws)
		log = append(codec.AppendLine(log, blob), '\n')
	}
	const apart = 60_000
	for i := range apart {
		add(uint64(i))
	}
	for range apart {
		add(7)
	}
	sc := dump.NewScanner(bytes.NewReader(log), "x")
	sc.Remember(nil, nil)
	var remembered [2]int
	n := 0
	for ; sc.Next(); n++ {
		r := sc.Record()
		if want := uint64(min(n, apart)); r.Err != nil || n < apart && r.Stack.Size != want || n >= apart && r.Stack.Size != 7 || len(r.Stack.PCs) != 1 {
			t.Fatalf("record %d: %+v", n, r)
		}
		if r.Memo != 0 {
			remembered[n/apart]++
		}
	}
	if n != 2*apart || remembered[0] == 0 || remembered[0] > apart/3 || remembered[1] < apart/4 || remembered[1] == apart {
		t.Errorf("%d records, of which %v had a number", n, remembered)
	}
}
