//go:build ignore

// Cgo allocates through C in eight goroutines, each on a thread of its own.
package main

/*
#include <stdlib.h>
void *kept[1000];
__attribute__((noinline)) static void keep(int i) { kept[i] = malloc(1000); }
__attribute__((noinline)) static void churn(int n) { void *volatile p = malloc(n); free(p); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
)

func main() {
	var w sync.WaitGroup
	for t := range 8 {
		w.Go(func() {
			runtime.LockOSThread()
			for i := t; i < 1000; i += 8 {
				C.keep(C.int(i))
				C.churn(C.int(i))
			}
		})
	}
	w.Wait()
	fmt.Println("done")
}
