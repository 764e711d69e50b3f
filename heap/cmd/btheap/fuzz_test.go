package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// FuzzCommand runs whole subcommands on any log: they end, two runs say the same,
// and JSON is JSON.
func FuzzCommand(f *testing.F) {
	f.Add([]byte(leaking(f, true)), uint16(0))
	f.Add([]byte(leaking(f, false)), uint16(4))
	f.Add([]byte("~h#boot\n~e#AAA=\n~h#begin 1 n=5\n"), uint16(7))
	f.Add([]byte("~b#size: 18446744073709551615, 0x1\nx\n~b#size: 1, 0x1\n"), uint16(3))
	f.Add([]byte(tornLog(f)), uint16(18))
	serial, err := os.ReadFile("../../../corpus/serial.log")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(serial[:4000], uint16(0x1ff))
	f.Fuzz(func(t *testing.T, log []byte, set uint16) {
		commands := [][]string{{"top"}, {"diff", "-n", "0"}, {"dumps"}, {"html"},
			{"export", "-F", "folded"},
			{"leaks"}, {"leaks", "--json", "--heap", "1M"}, {"top", "--json"}, {"diff", "--json"}, {"top", "--by", "size"}, {"map"}}
		n := int(set) % len(commands)
		args := append([]string{}, commands[n]...)
		for i, flag := range []string{"--split=a", "--dump=1..2", "--by=module", "--hide=4", "--weight=count", "--focus=0"} {
			if int(set)/len(commands)>>i&1 == 1 {
				args = append(args, flag)
			}
		}
		path := filepath.Join(t.TempDir(), "x.log")
		if err := os.WriteFile(path, log, 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
		out, errs, code := command("", args...)
		if code < 0 || code > 2 {
			t.Fatalf("%v: exit code %d, %s", args, code, errs)
		}
		if out2, errs2, code2 := command("", args...); out != out2 || errs != errs2 || code != code2 {
			t.Fatalf("%v: two runs differ:\n%s%s\n%s%s", args, out, errs, out2, errs2)
		}
		isJSON := slices.ContainsFunc(commands[n], func(a string) bool { return a == "--json" })
		if code != 2 && isJSON && !json.Valid([]byte(out)) {
			t.Fatalf("%v: not JSON: %.300q", args, out)
		}
	})
}
