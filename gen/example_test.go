package gen_test

import (
	"fmt"
	"log"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
)

// The stack of an allocation of a synthetic program is the same each time.
func ExampleModelByName() {
	m, ok := gen.ModelByName("x86_64-pie")
	if !ok {
		log.Fatal("no such model")
	}
	var first, again codec.Stack
	m.Program(1).Next(&first)
	m.Program(1).Next(&again)
	fmt.Println(len(first.PCs) > 0, fmt.Sprint(first.PCs) == fmt.Sprint(again.PCs))
	// Output: true true
}
