package export_test

import (
	"log"
	"os"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/export"
	"github.com/lwsbt/lwsbt/symbol"
)

// A profile of two call paths, for flamegraph.pl.
func ExampleWrite() {
	site := func(name string) symbol.Addr {
		return symbol.Addr{Location: &symbol.Location{Frames: []symbol.Frame{{Func: name, Name: name}}}}
	}
	main := site("main")
	var b profile.Builder
	b.Add(b.Path([]symbol.Addr{site("parse"), main}), profile.Value{Bytes: 4096, Count: 2})
	b.Add(b.Path([]symbol.Addr{site("listen"), main}), profile.Value{Bytes: 512, Count: 1})
	p, err := profile.New(b.End(profile.DumpInfo{Name: "dump 1"}))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := export.Write(os.Stdout, p, "folded", profile.Bytes); err != nil {
		log.Fatal(err)
	}
	// Output:
	// main;parse 4096
	// main;listen 512
}
