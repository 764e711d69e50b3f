package interop_test

import (
	"fmt"
	"log"

	"github.com/lwsbt/lwsbt/cmd/btconform/internal/interop"
)

// The blobs of a clang build of lws, read by a gcc build of lws.
func ExampleRecordedMatrix() {
	decoders, err := interop.RecordedMatrix()
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range decoders {
		if d.Name != "x86_64-gcc12-O2" {
			continue
		}
		for _, c := range d.Cells {
			if c.Encoder == "x86_64-clang14-O2" {
				fmt.Printf("%d of %d blobs are not read\n", c.Fails(), c.Fails()+c.Exact+c.Low)
			}
		}
	}
	// Output: 459 of 459 blobs are not read
}
