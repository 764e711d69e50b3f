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
	text, err := fs.ReadFile(vectors.FS, "bare.btv")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Split(string(text), "\n\n")[1])
	// Output:
	// id: bare/empty
	// clause: BT-BARE-1.1 BT-BARE-1.2
	// op: bare bare-encode
	// machine: exact64
	// in: size=0 pcs=-
	// bits: 00000.
	// want: bare bits=6 pcs=-
}
