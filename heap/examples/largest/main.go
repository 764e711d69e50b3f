// Largest prints the call paths that hold the most memory in the last dump of a log.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"regexp"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: largest PROGRAM LOG")
	}
	r, err := heaplog.Open(context.Background(), heaplog.Exe(os.Args[1]), heaplog.Files(os.Args[2]),
		heaplog.Split(regexp.MustCompile("connections open")), heaplog.Select(-1, -1))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	p, err := profile.Collect(r.Dumps())
	if err != nil {
		log.Fatal(err)
	}
	shown := profile.View{Basenames: true, Fold: true, Filter: profile.Filter{Hide: regexp.MustCompile(`^heap_alloc$`)}}
	for _, row := range p.View(shown).Top(profile.Bytes, 3) {
		fmt.Println(row.Value().Bytes, "bytes in", row.Value().Count, "allocations")
		for _, frame := range row.Stack() {
			fmt.Println("   ", frame)
		}
	}
	for _, note := range r.Summary().Notes {
		fmt.Fprintln(os.Stderr, note.Text)
	}
}
