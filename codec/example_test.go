package codec_test

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
)

// A line that lws logged for an allocation of 7520 bytes.
func ExampleDecodeLine() {
	var s codec.Stack
	if err := codec.DecodeLine(&s, []byte("~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d bytes, %#x\n", s.Size, s.PCs)
	// Output:
	// 7520 bytes, [0x406651 0x406852 0x406c1b 0x406294]
}

func ExampleEncoder() {
	s := codec.Stack{Size: 7520, PCs: []uint64{0x406651, 0x406852, 0x406c1b, 0x406294}}
	blob, err := codec.Encoder{}.AppendBlob(nil, &s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", codec.AppendLine(nil, blob))
	// Output:
	// ~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV
}

// A line of a 32-bit device, copied from a message with a line end.
func ExampleDecoder() {
	d := codec.Decoder{Word: 32, Lenient: true}
	var s codec.Stack
	blob, err := d.ParseLine(nil, []byte("IF0BmUQugNCkgCnkhdAYpQa6wAAV\n"))
	if err == nil {
		err = d.Decode(&s, nil, blob)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Size, len(s.PCs))
	// Output:
	// 7520 4
}

// An event of a recording: a block of 24 bytes, with its address and time.
func ExampleEncoder_AppendEvent() {
	var u codec.User
	u.Set(codec.TagEvent, codec.EventAllocated)
	u.Set(codec.TagAddress, 0x20001000)
	u.Set(codec.TagTime, 1500)
	s := codec.Stack{Size: 24, PCs: []uint64{0x8001234, 0x8000456}}
	blob, err := codec.Encoder{}.AppendEvent(nil, &s, &u)
	if err != nil {
		fmt.Println(err)
		return
	}
	line := codec.AppendEventLine(nil, blob)
	fmt.Printf("%s\n", line)
	u.Reset()
	if err := (codec.Decoder{}).DecodeEvent(&s, &u, blob); err != nil {
		fmt.Println(err)
		return
	}
	addr, _ := u.Get(codec.TagAddress)
	fmt.Printf("%d bytes at %#x\n", s.Size, addr)
	// Output:
	// ~e#EHEAAkaBxAACKwVgJ5AACAAIWu4UCAAY
	// 24 bytes at 0x20001000
}
