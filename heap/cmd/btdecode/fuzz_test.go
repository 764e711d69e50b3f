package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
)

// FuzzCommand runs the whole command on any log with some of its flags: it ends, two
// runs say the same, JSON is JSON, and each record is in the output or counted.
func FuzzCommand(f *testing.F) {
	for _, name := range []string{"serial.log", "captures/lws-dump-pie.log"} {
		log, err := os.ReadFile("../../../corpus/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(log[:min(len(log), 4000)], uint16(0))
		f.Add(log[:min(len(log), 2000)], uint16(0xffff))
	}
	f.Add([]byte("~h#boot prog=x\n{{{reset}}}{{{module:0:a:elf:00}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n~h#begin 1 u=1 n=2\n"+readmeLine+"\n~h#end 1\n"), uint16(3))
	f.Add([]byte("\xff\xfe~\x00m\x00#\x00"), uint16(64))
	f.Add([]byte("~b#size: 18446744073709551615, 0x1\n~b#size: 1, 0x1\nbacktrace: 0x123456\n"), uint16(9))
	f.Fuzz(func(t *testing.T, log []byte, set uint16) {
		args := argsOf(set)
		text, errs, code := command(string(log), args...)
		if code < 0 || code > 2 {
			t.Fatalf("%v: exit code %d, %s", args, code, errs)
		}
		if text2, errs2, code2 := command(string(log), args...); text != text2 || errs != errs2 || code != code2 {
			t.Fatalf("%v: two runs differ:\n%q %q %d\n%q %q %d", args, text, errs, code, text2, errs2, code2)
		}
		if code == 2 && strings.Contains(errs, "no records") {
			return
		}
		if slices.Contains(args, "jsonl") {
			checkObjects(t, text, log, len(args) == 2)
		}
	})
}

// argsOf returns the command line that has the bits of set.
func argsOf(set uint16) (args []string) {
	args = append(args, [][]string{nil, {"--passthrough"}, {"-F", "jsonl"}, {"--hide=a"}}[set%4]...)
	for i, flag := range []string{"--strict", "--machine=wrap64", "--machine=exact32"} {
		if set>>(i+2)&1 == 1 {
			args = append(args, flag)
		}
	}
	return args
}

// checkObjects checks the objects of --format jsonl. With all, each record of the log has
// one.
func checkObjects(t *testing.T, text string, log []byte, all bool) {
	t.Helper()
	objects := 0
	for l := range strings.Lines(text) {
		objects++
		if !json.Valid([]byte(l)) {
			t.Fatalf("not JSON: %q", l)
		}
	}
	if n := recordsIn(t, log); all && n >= 0 && objects != n {
		t.Fatalf("%d records, %d objects", n, objects)
	}
}

// recordsIn counts the records in a log; -1 if the log cannot be read.
func recordsIn(t *testing.T, log []byte) (n int) {
	r, err := heaplog.Open(t.Context(), heaplog.Stream(bytes.NewReader(log), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for it, err := range r.Items() {
		switch {
		case err != nil && !errors.Is(err, heaplog.ErrNoRecord):
			return -1
		case err == nil && it.Kind != recording.KindText && it.Kind != recording.KindHeader && it.Kind != recording.KindIdle:
			n++
		}
	}
	return n
}
