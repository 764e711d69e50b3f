// Stacks prints the stacks from which ref-c/vectors are recorded: a line for each, with ID, size
// and addresses in hexadecimal, - for no addresses, separated by tabs.
//
//	go run ./stacks WORD    # 32 or 64 bits
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/lwsbt/lwsbt/gen"
)

func main() {
	word := map[string]int{"32": 32, "64": 64}[strings.Join(os.Args[1:], " ")]
	if word == 0 {
		fmt.Fprintln(os.Stderr, "usage: stacks 32|64")
		os.Exit(2)
	}
	w := bufio.NewWriter(os.Stdout)
	for _, s := range gen.VectorStacks(word, 1) {
		addresses := strings.Trim(fmt.Sprintf("%x", s.Stack.PCs), "[]")
		fmt.Fprintf(w, "%s\t%x\t%s\n", s.ID, s.Stack.Size, cmp.Or(addresses, "-"))
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "stacks:", err)
		os.Exit(3)
	}
}
