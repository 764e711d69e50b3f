package arch

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"testing"
)

// Instructions as the assemblers of binutils encode them, at 0x1000 and after.
// What real compilers write is compared with objdump in package symbol.
func TestFollowsCall(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		word    int
		big     bool
		thumb   bool
		code    string
		what    string
		call    bool
	}{
		{elf.EM_X86_64, 64, false, false, "e800000000", "call .+5", true},
		{elf.EM_X86_64, 64, false, false, "ff1500000000", "call *0(%rip)", true},
		{elf.EM_X86_64, 64, false, false, "41ffd3", "call *%r11", true},
		{elf.EM_X86_64, 64, false, false, "42ff94e878563412", "call *0x12345678(%rax,%r13,8)", true},
		{elf.EM_X86_64, 64, false, false, "e900000000", "jmp .+5", false},
		{elf.EM_X86_64, 64, false, false, "ffe0", "jmp *%rax", false},
		{elf.EM_X86_64, 64, false, false, "e800000070", "call far outside the code", false},
		{elf.EM_386, 32, false, false, "ff5508", "call *8(%ebp)", true},
		{elf.EM_AARCH64, 64, false, false, "00000094", "bl .", true},
		{elf.EM_AARCH64, 64, false, false, "00023fd6", "blr x16", true},
		{elf.EM_AARCH64, 64, false, false, "00021fd6", "br x16", false},
		{elf.EM_ARM, 32, false, false, "feffffeb", "bl .", true},
		{elf.EM_ARM, 32, false, false, "33ff2fe1", "blx r3", true},
		{elf.EM_ARM, 32, false, false, "feffffea", "b .", false},
		{elf.EM_ARM, 32, false, true, "fff7feff", "bl .", true},
		{elf.EM_ARM, 32, false, true, "9847", "blx r3", true},
		{elf.EM_ARM, 32, false, true, "1847", "bx r3", false},
		{elf.EM_RISCV, 64, false, false, "ef000000", "jal ra, .", true},
		{elf.EM_RISCV, 64, false, false, "0294", "c.jalr s0", true},
		{elf.EM_RISCV, 64, false, false, "2e95", "c.add a0, a1", false},
		{elf.EM_RISCV, 64, false, false, "0290", "c.ebreak", false},
		{elf.EM_RISCV, 64, false, false, "6f000000", "j .", false},
		{elf.EM_MIPS, 32, true, false, "0c00040000000000", "jal 0x1000; nop", true},
		{elf.EM_MIPS, 32, false, false, "09f8200300000000", "jalr t9; nop", true},
		{elf.EM_MIPS, 32, true, false, "0320000800000000", "jr t9; nop", false},
		{elf.EM_PPC, 32, true, false, "48000001", "bl .", true},
		{elf.EM_PPC, 32, true, false, "4e800421", "bctrl", true},
		{elf.EM_PPC, 32, true, false, "4e800420", "bctr", false},
		{elf.EM_S390, 64, true, false, "c0e500000000", "brasl %r14, .", true},
		{elf.EM_S390, 64, true, false, "0de1", "basr %r14, %r1", true},
		{elf.EM_S390, 64, true, false, "07fe", "br %r14", false},
		{elf.EM_XTENSA, 32, false, false, "e00800", "callx8 a8", true},
		{elf.EM_XTENSA, 32, false, false, "a00800", "jx a8", false},
	} {
		b, err := hex.DecodeString(c.code)
		if err != nil {
			t.Fatal(err)
		}
		code := Code{Bytes: b, Addr: 0x1000 + uint64(len(b)), Word: c.word, Big: c.big, Thumb: c.thumb,
			Text: func(a uint64) bool { return a>>16 == 0 }}
		a := Of(c.machine)
		if got := a.FollowsCall(&code); got != c.call || !a.RecognisesCalls() {
			t.Errorf("%s, %s (%s): call %v, want %v", a.Name, c.what, c.code, got, c.call)
		}
		for n := range b { // cut short, it may be something else, but is read no further
			code.Bytes = b[n:]
			a.FollowsCall(&code)
		}
	}
	if a := Of(elf.EM_SH); a.RecognisesCalls() || !a.FollowsCall(&Code{}) || a.Step != 1 {
		t.Errorf("a machine that is not in the table: %+v", a)
	}
}

func TestCallAddr(t *testing.T) {
	for _, c := range []struct {
		machine   elf.Machine
		ret, want uint64
	}{
		{elf.EM_X86_64, 0x1005, 0x1004},
		{elf.EM_X86_64, 0, 0},
		{elf.EM_ARM, 0x1004, 0x1003},
		{elf.EM_ARM, 0x1005, 0x1003},  // Thumb
		{elf.EM_MIPS, 0x1008, 0x1000}, // the call, not its delay slot
		{elf.EM_MIPS, 0x1009, 0x1007}, // MIPS16
		{elf.EM_MIPS, 4, 3},
		{elf.EM_SH, 0x1002, 0x1001},
	} {
		if got := Of(c.machine).CallAddr(c.ret); got != c.want {
			t.Errorf("%v: call of %#x at %#x, want %#x", c.machine, c.ret, got, c.want)
		}
	}
}

func ExampleArch_CallAddr() {
	mips := Of(elf.EM_MIPS)
	fmt.Printf("%s: a call that returns to 0x400108 is at %#x\n", mips.Name, mips.CallAddr(0x400108))
	// Output: MIPS: a call that returns to 0x400108 is at 0x400100
}
