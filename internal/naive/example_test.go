package naive_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/naive"
)

// The vectors kill a decoder with the sign bit inverted.
func ExampleMutant_Start() {
	set, err := conformance.Builtin()
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range naive.Mutants() {
		if m.Name != "sign-flipped" {
			continue
		}
		report, err := conformance.Run(context.Background(), set.Select("delta/back-0"), m.Start, conformance.Options{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s (%s): %v\n", m.Name, m.Bug, report.Failed())
	}
	// Output: sign-flipped (0 subtracts, 1 adds): true
}
