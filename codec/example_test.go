package codec_test

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
)

// A line that lws logged for an allocation of 7520 bytes.
func ExampleDecode() {
	blob, err := codec.ParseLine(nil, []byte("~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var s codec.Stack
	if err := codec.Decode(&s, blob); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d bytes, %#x\n", s.Size, s.PCs)
	// Output:
	// 7520 bytes, [0x406651 0x406852 0x406c1b 0x406294]
}

func ExampleAppendBlob() {
	s := codec.Stack{Size: 7520, PCs: []uint64{0x406651, 0x406852, 0x406c1b, 0x406294}}
	blob, err := codec.AppendBlob(nil, &s, codec.MachineExact64, codec.SearchLws)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", codec.AppendLine(nil, blob))
	// Output:
	// ~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV
}
