package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

var update = flag.Bool("update", false, "write the table of spec/lws.md anew")

// The table of spec/lws.md: what old and mended writers and readers make of the synthetic stacks of ref-c/stacks.
func TestOldAndMended(t *testing.T) {
	old, mended := os.Getenv("LWS_PREFIX"), os.Getenv("LWS_MENDED")
	if old == "" || mended == "" {
		t.Skip("LWS_PREFIX or LWS_MENDED is not set: no libwebsockets and mended one to compare")
	}
	names := []string{"old lws", "mended lws", "the codec"}
	testees := []conformance.Testee{serve(t, old), serve(t, mended), nil}
	var err error
	if testees[2], err = conformance.Codec(t.Context()); err != nil {
		t.Fatal(err)
	}
	stacks := syntheticStacks(t)
	table := "| written by | read right by " + strings.Join(names, ", by ") + " |\n"
	table = strings.ReplaceAll(table, ", by ", " | by ") + "| --- | --- | --- | --- |\n"
	for i, writer := range testees {
		hello := writer.Hello()
		machine, search := codec.MachineExact64, codec.SearchLws
		if i < 2 {
			machine, search = hello.Machines[0], hello.Searches[0]
		}
		var encode, decode []conformance.Request
		for k := range stacks {
			encode = append(encode, conformance.Request{Op: "encode", Machine: machine, Search: search, In: &stacks[k]})
		}
		blobs, err := askAll(writer, encode)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blobs {
			decode = append(decode, conformance.Request{Op: "decode", Data: b.Data, Word: 64})
		}
		row := "| " + names[i]
		for _, reader := range testees {
			answers, err := askAll(reader, decode)
			if err != nil {
				t.Fatal(err)
			}
			right, low, rejected := 0, 0, 0
			for k, a := range answers {
				switch {
				case a.Outcome != conformance.OK:
					rejected++
				case a.Value.Equal(stacks[k]):
					right++
				case lowBits(a.Value, stacks[k]):
					low++
				}
			}
			row += fmt.Sprintf(" | %d (%d, %d)", right, low, rejected)
		}
		table += row + " |\n"
	}
	table = fmt.Sprintf("Of %d synthetic 64-bit stacks, right; in brackets, right in the low 31 bits of all values alone, and rejected:\n\n", len(stacks)) + table
	table += "\nOf the vectors of this project for what lws can do, " + answered(t, "old lws", old) + "; " + answered(t, "mended lws", mended) + ".\n"
	text, err := os.ReadFile("../../spec/lws.md")
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(text), "Of "+strconv.Itoa(len(stacks))+" synthetic")
	if at < 0 {
		at = strings.Index(string(text), "@TABLE@")
	}
	if at < 0 {
		t.Fatal("spec/lws.md has no table of old and mended")
	}
	end := strings.Index(string(text)[at:], "\n\n## ")
	if end < 0 {
		end = len(text) - at
	} else {
		end++
	}
	if got := string(text)[at : at+end]; got != table {
		if !*update {
			t.Fatalf("spec/lws.md has\n%s\nthe table is\n%s", got, table)
		}
		if err := os.WriteFile("../../spec/lws.md", []byte(string(text)[:at]+table+string(text)[at+end:]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// answered returns how many vectors a library answers right: as written, and with any spill bits.
func answered(t *testing.T, name, prefix string) string {
	t.Helper()
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	start := func(context.Context) (conformance.Testee, error) { return serve(t, prefix), nil }
	var right [2]int
	asked := 0
	for i, written := range []bool{true, false} {
		report, err := conformance.Run(t.Context(), set, start, conformance.Options{Seed: 1, Written: written})
		if err != nil {
			t.Fatal(err)
		}
		right[i], asked = report.Counts.Pass, report.Counts.Pass+report.Counts.Fail
	}
	return fmt.Sprintf("%s answers %d of %d right as they are written, and %d whatever their spill bits", name, right[0], asked, right[1])
}

// lowBits reports whether the low 31 bits of all values are those of b.
func lowBits(a, b conformance.Value) bool {
	const mask = 1<<31 - 1
	return a.Size&mask == b.Size&mask && slices.EqualFunc(a.PCs, b.PCs, func(x, y uint64) bool { return x&mask == y&mask })
}

func serve(t *testing.T, prefix string) conformance.Testee {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("make", "-C", "..", "OUT="+dir, "LWS_PREFIX="+prefix).CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	testee, err := conformance.Process([]string{filepath.Join(dir, "btref"), "serve"}, time.Minute)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { testee.Close() })
	return testee
}

func syntheticStacks(t *testing.T) (stacks []conformance.Value) {
	t.Helper()
	out, err := exec.Command("go", "run", "../stacks", "64").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		field := strings.Split(strings.TrimSpace(line), "\t")
		var v conformance.Value
		v.Size, _ = strconv.ParseUint(field[1], 16, 64)
		if field[2] != "-" {
			for _, word := range strings.Fields(field[2]) {
				pc, err := strconv.ParseUint(word, 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				v.PCs = append(v.PCs, pc)
			}
		}
		stacks = append(stacks, v)
	}
	return stacks
}

// askAll returns the answers to all requests. It calls t.Ask until there is an answer to each.
func askAll(t conformance.Testee, requests []conformance.Request) ([]conformance.Answer, error) {
	answers := make([]conformance.Answer, 0, len(requests))
	for len(answers) < len(requests) {
		more, err := t.Ask(requests[len(answers):])
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			return nil, errors.New("testee: no answer and no error")
		}
		answers = append(answers, more...)
	}
	return answers, nil
}
