package capture

import "slices"

// A machine is a target of compilers, and what runs its programs.
type machine struct {
	name  string
	gcc   []string // command and flags
	clang []string // nil: not built by clang
	link  []string // flags for gcc when it links
	qemu  string   // "": runs here
	bare  bool     // no C library: sys.c
	more  []string // further options that change its prologues
}

// variant returns the k-th of the sets of options that code is compiled with, in turns.
func (m machine) variant(k int, clang bool) []string {
	switch k % 3 {
	case 0:
		if m.bare { // no library for the protector
			return []string{"-ffunction-sections", "-fno-stack-protector"}
		}
		return []string{"-ffunction-sections", "-fstack-protector"}
	case 1:
		// clang has it for some machines only, gcc 12 not for Armv6-M.
		if clang || m.name == "cortex-m0" {
			break
		}
		return []string{"-fstack-clash-protection", "-fno-stack-protector"}
	}
	return append([]string{"-fno-stack-protector"}, m.more...)
}

// machineOf returns the machine of a name.
func machineOf(name string) machine {
	return machines[slices.IndexFunc(machines, func(m machine) bool { return m.name == name })]
}

var machines = []machine{
	{name: "x86-64", gcc: f("gcc"), clang: f("clang")},
	{name: "i686", gcc: f("i686-linux-gnu-gcc"), clang: f("clang --target=i686-linux-gnu"), qemu: "qemu-i386"},
	{name: "aarch64", gcc: f("aarch64-linux-gnu-gcc"), clang: f("clang --target=aarch64-linux-gnu"), qemu: "qemu-aarch64", more: f("-mbranch-protection=standard")},
	{name: "arm", gcc: f("arm-linux-gnueabihf-gcc -marm"), clang: f("clang --target=armv7-linux-gnueabihf -marm"), qemu: "qemu-arm"},
	{name: "thumb2", gcc: f("arm-linux-gnueabihf-gcc -mthumb"), clang: f("clang --target=armv7-linux-gnueabihf -mthumb"), qemu: "qemu-arm"},
	{name: "cortex-m3", gcc: f("arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb"), clang: f("clang --target=armv7m-none-eabi -mcpu=cortex-m3 -mfloat-abi=soft"), qemu: "qemu-arm", bare: true},
	{name: "cortex-m0", gcc: f("arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb"), clang: f("clang --target=armv6m-none-eabi -mcpu=cortex-m0 -mfloat-abi=soft"), qemu: "qemu-arm", bare: true},
	{name: "riscv64", gcc: f("riscv64-linux-gnu-gcc"), clang: f("clang --target=riscv64-linux-gnu -mabi=lp64d -march=rv64gc"), qemu: "qemu-riscv64", more: f("-msave-restore")},
	{name: "riscv32", gcc: f("riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32"), clang: f("clang --target=riscv32-unknown-elf -march=rv32imac -mabi=ilp32"), qemu: "qemu-riscv32", bare: true, more: f("-msave-restore")},
	{name: "mips", gcc: f("mips-linux-gnu-gcc"), clang: f("clang --target=mips-linux-gnu -mips32r2"), qemu: "qemu-mips"},
	{name: "mipsel", gcc: f("mipsel-linux-gnu-gcc"), clang: f("clang --target=mipsel-linux-gnu -mips32r2"), qemu: "qemu-mipsel"},
	{name: "mips64el", gcc: f("mips64el-linux-gnuabi64-gcc"), clang: f("clang --target=mips64el-linux-gnuabi64 -mips64r2"), qemu: "qemu-mips64el"},
	{name: "mips64", gcc: f("mips64el-linux-gnuabi64-gcc -EB -mabi=64"), clang: f("clang --target=mips64-linux-gnuabi64 -mips64r2"), link: f("-Wl,-melf64btsmip"), qemu: "qemu-mips64", bare: true},
	{name: "ppc", gcc: f("powerpc-linux-gnu-gcc"), clang: f("clang --target=powerpc-linux-gnu"), qemu: "qemu-ppc"},
	{name: "s390x", gcc: f("s390x-linux-gnu-gcc"), clang: f("clang --target=s390x-linux-gnu"), qemu: "qemu-s390x"},
}

// A backend, with the machines it is for and what code must be compiled with for it.
type backend struct {
	name     string
	machines []string
	flags    []string
	table    bool    // with the table of functions
	recall   float64 // at least, in percent
	wrong    float64 // at most, in percent of the captured
	trusts   bool    // what is on the stack: not to be tried on a corrupted one
	report   bool    // for comparison: no targets
}

var backends = []backend{
	{name: "unwind", machines: f("x86-64 i686 aarch64 arm thumb2 riscv64 mips mipsel mips64el ppc s390x"), flags: f("-funwind-tables -fasynchronous-unwind-tables"), recall: 99, trusts: true},
	{name: "fp", machines: f("x86-64 i686 aarch64 riscv64 riscv32"), flags: f("-fno-omit-frame-pointer"), recall: 99},
	{name: "thumb", machines: f("thumb2 cortex-m3 cortex-m0"), table: true, recall: 99},
	{name: "thumb", machines: f("thumb2 cortex-m3 cortex-m0"), recall: 95, wrong: 1},
	{name: "arm", machines: f("arm"), table: true, recall: 99},
	{name: "arm", machines: f("arm"), recall: 95, wrong: 1},
	{name: "aarch64", machines: f("aarch64"), table: true, recall: 99},
	{name: "aarch64", machines: f("aarch64"), recall: 95, wrong: 1},
	{name: "riscv", machines: f("riscv64 riscv32"), table: true, recall: 99},
	{name: "riscv", machines: f("riscv64 riscv32"), recall: 95, wrong: 1},
	{name: "mips", machines: f("mips mipsel mips64 mips64el"), table: true, recall: 99},
	{name: "mips", machines: f("mips mipsel mips64 mips64el"), recall: 95, wrong: 1},
	{name: "ppc", machines: f("ppc"), recall: 99},
	{name: "s390x", machines: f("s390x"), flags: f("-mbackchain"), recall: 99},
	{name: "scan", machines: f("thumb2 arm aarch64 riscv64 mips"), report: true},
}

var levels = f("-O0 -O1 -O2 -Os -O3")
