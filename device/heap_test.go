package device

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Random allocations, held to a model, and every kind of damage: test/heap.c.
func TestHeap(t *testing.T) {
	each(t, func(t *testing.T, b build) {
		if b.word != "" {
			t.Skip("the heap's words are the machine's")
		}
		program := b.make(t, "heap")
		seeds, operations := 1, "400"
		if full() {
			seeds, operations = 3, "1000"
		}
		for seed := range seeds {
			argv := b.argv(program, strconv.Itoa(seed), operations)
			out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "ok: "+operations+" operations") {
				t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
			}
		}
	})
}
