package vectors_test

import (
	"fmt"
	"io/fs"
	"log"
	"strings"

	"github.com/lwsbt/lwsbt/conformance/vectors"
)

// The first record of a file, without any other package of this module.
func Example() {
	text, err := fs.ReadFile(vectors.FS, "size.btv")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Split(string(text), "\n\n")[1])
	// Output:
	// id: size/0-hex
	// clause: BT-SIZE-1 BT-COUNT-1.2
	// op: decode encode
	// why: catches: fields that end with a byte get another byte of padding
	// machine: exact64
	// in: size=0 pcs=400000
	// bits: 00001.                                     # depth 1
	// bits: 0. 010111. 10000000000000000000000.        # literal 0x400000
	// bits: 000001. 0.                                 # size 0
	// want: ok size=0 pcs=400000
}
