package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Any vectors, examples or requests under any flags: see cmdtest.FuzzSub.
func FuzzCommand(f *testing.F) {
	var formats [][]string
	for _, name := range []string{"json", "junit", "table"} {
		formats = append(formats, []string{"--format", name})
	}
	subs := []cmdtest.Sub{
		{Flags: append(formats, []string{"--as-written"}, []string{"--strict-reasons"}, []string{"--run", "*a*"}),
			Args: []string{"--seed", "1", "--jobs", "1", "-"}, Verdict: true},
		{Args: []string{"--seed", "1", "--jobs", "1", "--format", "json", "--known", "FILE", "--run", "end/*"}, Verdict: true},
		{Name: "list", Flags: [][]string{{"--run", "*a*"}}, Args: []string{"-"}},
	}
	for _, path := range []string{"../../conformance/vectors/end.btv", "../../conformance/vectors/text.btv"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		cmdtest.SeedSub(f, subs, data[:min(len(data), 4<<10)])
		cmdtest.SeedSub(f, subs, bytes.Replace(data, []byte("size=0"), []byte("size=1"), 1)) // a vector that fails
	}
	cmdtest.SeedSub(f, subs, []byte("hello btp=1\ndecode 1 00100004 word=64\nencode 2 size=1 frames=1,2 word=32\nline 3 \x1b[2J\n"))
	cmdtest.SeedSub(f, subs, []byte("btv 1\n\nvector a/\x01b\nclauses BT-SIZE-1\n"))
	cmdtest.FuzzSub(f, run, subs)
}
