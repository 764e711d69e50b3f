package conformance_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lwsbt/lwsbt/conformance"
)

// This example tests the codec of this module on the vectors about deltas. To test another
// program, use conformance.Process in place of conformance.Codec.
func ExampleRun() {
	set, err := conformance.Builtin()
	if err != nil {
		log.Fatal(err)
	}
	report, err := conformance.Run(context.Background(), set.Select("delta/*"), conformance.Codec, conformance.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Failed(), report.Counts.Fail)
	// Output: false 0
}

// A vector in a .btv file.
func ExampleParse() {
	const text = `btv 1

id: example/empty-stack
clause: BT-SIZE-1
op: decode
bits: 00000.             # depth 0
bits: 000011. 101.       # size 5
want: ok size=5 pcs=-
`
	vectors, err := conformance.Parse("example.btv", []byte(text))
	if err != nil {
		log.Fatal(err)
	}
	v := vectors[0]
	fmt.Printf("%s: %x is size %d\n", v.ID, v.Blob, v.Want.Value.Size)
	// Output: example/empty-stack: 0035000005 is size 5
}
