package symbol_test

import (
	"fmt"
	"log"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/symbol"
)

// A process has a library, and a lossy encoder recorded two addresses: one in the library, and
// one in no mapping.
func ExampleProcess_Resolve() {
	p, err := symbol.NewProcess(symbol.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	p.Map([]symbol.Mapping{{Start: 0x7f0000200000, End: 0x7f0000210000, Exec: true, Offset: 0x1000, Module: &symbol.Module{Name: "libx.so"}}})
	blob, err := codec.Encoder{Machine: codec.MachineWrap64}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x7f0000204321, 0x7e0012345678}, Size: 8}, nil)
	if err != nil {
		log.Fatal(err)
	}
	var s codec.Stack
	if err := (codec.Decoder{}).Decode(&s, nil, blob); err != nil {
		log.Fatal(err)
	}
	for _, a := range p.Resolve(nil, &s, blob) {
		fmt.Printf("%v: %v: %s\n", a.State, a, a.Missing())
	}
	// Output:
	// inferred: libx.so+0x5321: libx.so: no such file: give -e, or --sysroot
	// lost: ?12345678: only the low 31 bits are known
}

func ExampleParseFileSpec() {
	for _, arg := range []string{"app.elf", "rom.elf@0x4000_0000", "app@+0x5555_5555_4000"} {
		spec, err := symbol.ParseFileSpec(arg)
		fmt.Printf("%s %d %#x %v\n", spec.Path, spec.Load, spec.Addr, err)
	}
	// Output:
	// app.elf 0 0x0 <nil>
	// rom.elf 1 0x40000000 <nil>
	// app 2 0x555555554000 <nil>
}
