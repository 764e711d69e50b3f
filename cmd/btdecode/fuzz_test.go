package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/dump"
)

// FuzzCommand runs the whole command on any log with some of its flags: it ends, two
// runs say the same, JSON is JSON, and each record is in the output or counted.
func FuzzCommand(f *testing.F) {
	for _, name := range []string{"serial.log", "captures/lws-dump-pie.log"} {
		log, err := os.ReadFile("../../corpus/" + name)
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
		outputs := [][]string{nil, {"--passthrough"}, {"-F", "jsonl"}, {"--top", "5"}, {"-F", "folded"}, {"-F", "speedscope"}, {"-F", "pprof"}, {"--encode"}}
		out := outputs[set%8]
		args := append([]string{}, out...)
		for i, flag := range []string{"--strict", "--bare", "--machine=wrap64", "--machine=exact32", "--dump=last", "--split=a", "--only=[m-z]"} {
			if set>>(i+3)&1 == 1 && !(flag == "--dump=last" && (set%8 == 1 || set%8 == 7)) {
				args = append(args, flag)
			}
		}
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
		switch set % 8 {
		case 2:
			objects := 0
			for l := range strings.Lines(text) {
				objects++
				if !json.Valid([]byte(l)) {
					t.Fatalf("%v: not JSON: %q", args, l)
				}
			}
			if strings.Join(args, " ") == "-F jsonl" {
				if n := recordsIn(t, log); n >= 0 && objects != n {
					t.Fatalf("%d records, %d objects", n, objects)
				}
			}
		case 5:
			if code != 2 && !json.Valid([]byte(text)) {
				t.Fatalf("%v: not JSON: %.200q", args, text)
			}
		}
	})
}

// recordsIn counts the records in a log by the scanner alone; -1 if the log cannot
// be read.
func recordsIn(t *testing.T, log []byte) int {
	in, err := dump.NewInput(strings.NewReader(string(log)), "x")
	if err != nil {
		return -1
	}
	sc := dump.NewScanner(in, "x")
	sc.Recordings = true
	n := 0
	for sc.Next() {
		if r := sc.Record(); r.Kind != dump.Header || r.Err != nil {
			n++
		}
	}
	return n
}
