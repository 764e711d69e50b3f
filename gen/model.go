package gen

import "github.com/lwsbt/lwsbt/codec"

// Model is an address space: the location of the code of a kind of program, the form of
// its return addresses, and the depth of its stacks.
type Model struct {
	Name    string
	About   string
	Word    int           // bits, 32 or 64
	Machine codec.Machine // machine class of lws's encoder, built by gcc, on this machine

	app, lib region // the program, and its shared libraries
	step     uint64 // return addresses are multiples of step
	low      uint64 // bits set in each return address: Thumb, MIPS16
	window   bool   // the top two bits are the window increment of the call (Xtensa)
	depth    [2]int // frames of the program itself, fewest and most
	start    [2]int // number of outermost frames in lib, then in app
}

// region is a range of load addresses of a module, and the length of its code.
type region struct {
	lo, hi uint64 // range of load addresses, in pages; fixed if equal
	text   int    // bytes of code; 0 if there is no such module
}

// Models returns the models, embedded ones first.
func Models() []Model { return models[:] }

// ModelByName returns the model with the given name, and whether there is one.
func ModelByName(name string) (Model, bool) {
	for _, m := range models {
		if m.Name == name {
			return m, true
		}
	}
	return Model{}, false
}

const (
	kB = 1 << 10
	mB = 1 << 20
)

var models = [...]Model{
	{
		Name: "cortex-m", About: "Arm Cortex-M, code in flash at 0x08000000, Thumb bit set",
		Word: 32, Machine: codec.MachineZero32,
		app: region{lo: 0x0800_0000, hi: 0x0800_0000, text: 384 * kB}, step: 2, low: 1,
		depth: [2]int{3, 14}, start: [2]int{0, 2},
	},
	{
		Name: "esp32", About: "Xtensa ESP32, flash at 0x400d0000, window bits in the top two bits",
		Word: 32, Machine: codec.MachineWrap32,
		app: region{lo: 0x400d_0000, hi: 0x400d_0000, text: 900 * kB},
		lib: region{lo: 0x4008_0000, hi: 0x4008_0000, text: 100 * kB}, step: 1, window: true,
		depth: [2]int{3, 16}, start: [2]int{1, 1},
	},
	{
		Name: "mips-kseg0", About: "MIPS bare metal or kernel, in KSEG0 at 0x80000000",
		Word: 32, Machine: codec.MachineWrap32,
		app: region{lo: 0x8000_0000, hi: 0x8010_0000, text: 3 * mB}, step: 4,
		depth: [2]int{4, 18}, start: [2]int{0, 2},
	},
	{
		Name: "mips16", About: "MIPS16 code in KSEG0, ISA bit set",
		Word: 32, Machine: codec.MachineWrap32,
		app: region{lo: 0x8000_0000, hi: 0x8010_0000, text: 1 * mB}, step: 2, low: 1,
		depth: [2]int{4, 14}, start: [2]int{0, 2},
	},
	{
		Name: "riscv32", About: "RISC-V 32 bare metal, code in flash at 0x42000000",
		Word: 32, Machine: codec.MachineWrap32,
		app: region{lo: 0x4200_0000, hi: 0x4200_0000, text: 800 * kB}, step: 2,
		depth: [2]int{3, 16}, start: [2]int{0, 2},
	},
	{
		Name: "arm-linux", About: "Arm Linux, program at 0x10000, shared libraries below 0xb7000000",
		Word: 32, Machine: codec.MachineZero32,
		app: region{lo: 0x0001_0000, hi: 0x0001_0000, text: 1 * mB},
		lib: region{lo: 0xb6a0_0000, hi: 0xb6e0_0000, text: 2 * mB}, step: 4,
		depth: [2]int{4, 22}, start: [2]int{2, 1},
	},
	{
		Name: "i386-static", About: "i386, linked statically at 0x08048000",
		Word: 32, Machine: codec.MachineWrap32,
		app: region{lo: 0x0804_8000, hi: 0x0804_8000, text: 2 * mB}, step: 1,
		depth: [2]int{4, 22}, start: [2]int{0, 3},
	},
	{
		Name: "i386-pie", About: "i386, position-independent, everything below 0xf8000000",
		Word: 32, Machine: codec.MachineWrap32,
		app: region{lo: 0xf7e8_0000, hi: 0xf7f0_0000, text: 200 * kB},
		lib: region{lo: 0xf7a0_0000, hi: 0xf7b0_0000, text: 3 * mB}, step: 1,
		depth: [2]int{3, 19}, start: [2]int{2, 1},
	},
	{
		Name: "i386-kernel", About: "i386 Linux kernel at 0xc1000000",
		Word: 32, Machine: codec.MachineWrap32,
		app: region{lo: 0xc100_0000, hi: 0xc100_0000, text: 8 * mB}, step: 1,
		depth: [2]int{5, 20}, start: [2]int{0, 3},
	},
	{
		Name: "x86_64-static", About: "x86-64, linked statically at 0x401000",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0x40_1000, hi: 0x40_1000, text: 2 * mB}, step: 1,
		depth: [2]int{4, 22}, start: [2]int{0, 3},
	},
	{
		Name: "x86_64-nopie", About: "x86-64, program at 0x401000, shared libraries at 0x7f…",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0x40_1000, hi: 0x40_1000, text: 24 * mB},
		lib: region{lo: 0x7f00_0000_0000, hi: 0x7fff_0000_0000, text: 2 * mB}, step: 1,
		depth: [2]int{2, 20}, start: [2]int{2, 1},
	},
	{
		Name: "x86_64-pie", About: "x86-64, position-independent at 0x55…, libraries at 0x7f…",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0x5500_0000_0000, hi: 0x56ff_0000_0000, text: 2 * mB},
		lib: region{lo: 0x7f00_0000_0000, hi: 0x7fff_0000_0000, text: 2 * mB}, step: 1,
		depth: [2]int{2, 15}, start: [2]int{2, 1},
	},
	{
		Name: "x86_64-kernel", About: "x86-64 Linux kernel at 0xffffffff81000000 and its modules",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0xffff_ffff_8100_0000, hi: 0xffff_ffff_8100_0000, text: 14 * mB},
		lib: region{lo: 0xffff_ffff_c000_0000, hi: 0xffff_ffff_c080_0000, text: 300 * kB}, step: 1,
		depth: [2]int{4, 24}, start: [2]int{0, 3},
	},
	{
		Name: "aarch64-static", About: "AArch64, linked statically at 0x400000",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0x40_0000, hi: 0x40_0000, text: 2 * mB}, step: 4,
		depth: [2]int{4, 22}, start: [2]int{0, 3},
	},
	{
		Name: "aarch64-pie", About: "AArch64, position-independent at 0xaaaa…, libraries at 0xffff…",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0xaaaa_aaa0_0000, hi: 0xaaab_0000_0000, text: 2 * mB},
		lib: region{lo: 0xffff_8000_0000, hi: 0xffff_bf00_0000, text: 2 * mB}, step: 4,
		depth: [2]int{3, 20}, start: [2]int{2, 1},
	},
	{
		Name: "aarch64-kernel", About: "AArch64 Linux kernel at 0xffff800008000000",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0xffff_8000_0801_0000, hi: 0xffff_8000_0801_0000, text: 14 * mB}, step: 4,
		depth: [2]int{5, 24}, start: [2]int{0, 3},
	},
	{
		Name: "riscv64-static", About: "RISC-V 64, linked statically at 0x10000",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0x1_0000, hi: 0x1_0000, text: 1 * mB}, step: 2,
		depth: [2]int{4, 20}, start: [2]int{0, 3},
	},
	{
		Name: "riscv64-pie", About: "RISC-V 64, position-independent at 0x2a…, libraries at 0x3f…",
		Word: 64, Machine: codec.MachineWrap64,
		app: region{lo: 0x2a_aaaa_a000, hi: 0x2b_0000_0000, text: 1 * mB},
		lib: region{lo: 0x3f_8000_0000, hi: 0x3f_ff00_0000, text: 2 * mB}, step: 2,
		depth: [2]int{3, 20}, start: [2]int{2, 1},
	},
}
