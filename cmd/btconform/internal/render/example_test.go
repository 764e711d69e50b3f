package render_test

import (
	"context"
	"log"
	"os"

	"github.com/lwsbt/lwsbt/cmd/btconform/internal/render"
	"github.com/lwsbt/lwsbt/conformance"
)

func ExampleReport() {
	set, err := conformance.Builtin()
	if err != nil {
		log.Fatal(err)
	}
	start := func(ctx context.Context) (conformance.Testee, error) { return conformance.Codec(ctx) }
	report, err := conformance.Run(context.Background(), set.Select("spec/readme-stack"), start, conformance.Options{})
	if err != nil {
		log.Fatal(err)
	}
	report.Version = "1.0"
	if err := render.Report(os.Stdout, report, "tap", false); err != nil {
		log.Fatal(err)
	}
	// Output:
	// TAP version 14
	// 1..2
	// # lwsbt-go 1.0, seed 0
	// ok 1 - spec/readme-stack decode
	// ok 2 - spec/readme-stack encode
}
