package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Any log under any flags: see cmdtest.FuzzSub. Every record that the scanner found is in
// one of the report's counts.
func FuzzCommand(f *testing.F) {
	flags := [][]string{{"--format", "json"}, {"--machine", "wrap32"},
		{"--machine", "exact32"}, {"--machine", "zero64"}, {"--strict"}, {"--captured", "0,0"}}
	check := func(t *testing.T, args []string, code int, out string) {
		var r struct {
			Dump struct {
				Records                       int64
				Blob_records, Decoded_records int64
			}
		}
		if code != 0 || args[0] != "--format" || args[1] != "json" || len(args) > 2 && args[2] == "--format" {
			return
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if d := r.Dump; d.Records == 0 || d.Records > d.Blob_records+d.Decoded_records {
			t.Errorf("%d records of %d and %d found", d.Records, d.Blob_records, d.Decoded_records)
		}
	}
	subs := []cmdtest.Sub{{Flags: flags, Args: []string{"-"}, Check: check}}
	log, err := os.ReadFile("../../corpus/serial.log")
	if err != nil {
		f.Fatal(err)
	}
	cmdtest.SeedSub(f, subs, log[:min(len(log), 8<<10)])
	f.Add(uint32(1<<3), uint8(0), []byte("~m#AL39VVVUAABe/qqqqgIigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoiHQAAHE="))
	f.Add(uint32(1), uint8(0), []byte("~b#size: 18446744073709551615, 0x1\n~b#size: 18446744073709551615, 0x1\n"))
	cmdtest.FuzzSub(f, run, subs)
}
