//go:build !linux

// Btrecord runs a Linux program and records its heap.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "btrecord: it records programs of Linux, on Linux")
	os.Exit(2)
}
