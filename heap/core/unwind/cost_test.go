package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// part is a section of a generated file.
type part struct {
	elf.Section64
	data []byte
}

// sections returns an x86-64 file with these sections; the last one contains the names.
func sections(list []part) []byte {
	le := binary.LittleEndian
	var body bytes.Buffer
	at := uint64(64 + 64*(len(list)+1))
	headers := []elf.Section64{{}}
	for _, s := range list {
		h := s.Section64
		h.Off = at + uint64(body.Len())
		if s.data != nil {
			h.Size = uint64(len(s.data))
		}
		body.Write(s.data)
		headers = append(headers, h)
	}
	var out bytes.Buffer
	binary.Write(&out, le, elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64),
		Version: 1, Shoff: 64, Ehsize: 64, Phentsize: 56, Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1)})
	binary.Write(&out, le, headers)
	out.Write(body.Bytes())
	return out.Bytes()
}

const (
	kindText = uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR)
	longName = 1 << 20
)

// TestCostOfObjects reads small files that would take much memory or time without limits.
func TestCostOfObjects(t *testing.T) {
	le := binary.LittleEndian
	text := part{elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: kindText, Addr: 0x10000}, make([]byte, 4096)}
	names := part{elf.Section64{Type: uint32(elf.SHT_STRTAB)}, append(bytes.Repeat([]byte{'a'}, longName), 0)}
	var symbols, sonames bytes.Buffer
	for i := range 4000 {
		binary.Write(&symbols, le, elf.Sym64{Info: byte(elf.STT_FUNC), Shndx: 1, Value: 0x10000 + uint64(i)})
		binary.Write(&sonames, le, elf.Dyn64{Tag: int64(elf.DT_SONAME)})
	}
	many := func(n int, s part) (list []part) {
		for range n {
			list = append(list, s)
		}
		return list
	}
	var parts []part
	for i := range 20000 {
		parts = append(parts, part{elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: kindText, Addr: 0x10000 + uint64(i)*2, Size: 1}, nil})
	}
	var functions bytes.Buffer
	for i := range 200000 {
		binary.Write(&functions, le, elf.Sym64{Info: byte(elf.STT_FUNC), Shndx: 1, Value: 0x10000 + 39998 - uint64(i%2)})
	}
	for name, list := range map[string][]part{
		"a long name that all sections have": append(many(4000, text), names),
		"a long name that all symbols have": {text, {elf.Section64{Type: uint32(elf.SHT_SYMTAB), Link: 3, Entsize: 24}, symbols.Bytes()}, names,
			{elf.Section64{Type: uint32(elf.SHT_STRTAB)}, []byte{0}}},
		"a long name that the library has many times": {text, {elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Link: 3}, sonames.Bytes()}, names,
			{elf.Section64{Type: uint32(elf.SHT_STRTAB)}, []byte{0}}},
		"many parts of code, many symbols": append(parts,
			part{elf.Section64{Type: uint32(elf.SHT_SYMTAB), Link: uint32(len(parts) + 2), Entsize: 24}, functions.Bytes()},
			part{elf.Section64{Type: uint32(elf.SHT_STRTAB)}, []byte{0}}),
	} {
		t.Run(name, func(t *testing.T) {
			data := sections(list)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := cmdtest.ProcessorTime()
			o, err := NewObject(bytes.NewReader(data), "x")
			took := cmdtest.ProcessorTime() - start
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+16*uint64(len(data)) {
				t.Errorf("%d bytes of memory for a file of %d", used, len(data))
			}
			if took > time.Minute {
				t.Errorf("took %v", took)
			}
			if err == nil && o.symbols && len(o.starts) == 0 && name != "many parts of code, many symbols" {
				t.Error("no functions")
			}
		})
	}
}

// TestCostOfStacks unwinds many threads, each at a place where following the code is slow.
func TestCostOfStacks(t *testing.T) {
	cmdtest.Long(t)
	// A jump table, followed by jumps to themselves: each is tried as a target.
	code := append([]byte{0xff, 0x24, 0xc5, 0, 0, 0, 0}, bytes.Repeat([]byte{0xeb, 0xfe}, 1<<15)...)
	a := archOf(elf.EM_X86_64, elf.ELFCLASS64, binary.LittleEndian)
	n := uint64(len(code))
	o := &Object{Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Order: binary.LittleEndian, arch: a, file: bytes.NewReader(code),
		pages: map[uint64][]byte{}, symbols: true, starts: []uint64{fuzzText}}
	o.loads = []load{{fuzzText, 0, n, fuzzText + n}}
	o.text = []span{{fuzzText, fuzzText + n}}
	u := &Unwinder{Memory: stackMemory(make([]byte, 1<<12)), Modules: []*Module{{Object: o}}}
	walk := func(thread int) {
		var r Regs
		r.PC = fuzzText + n - 1 - 2*uint64(thread%(1<<14)) // code followed once is kept
		r.Set(a.sp, fuzzStack)
		if list := u.Walk(o.Machine, o.Class, o.Order, r); len(list) == 0 {
			t.Fatal("no frame")
		}
	}
	// Each stack follows all jumps, so a few hundred stacks reach the limit on work for an
	// image.
	start, threads := cmdtest.ProcessorTime(), 0
	for ; threads < 2000 && !u.Exhausted; threads++ {
		walk(threads)
	}
	limited := cmdtest.ProcessorTime() - start
	t.Logf("%d threads, %d instructions, %v", threads, u.used, limited)
	if u.used > maxWalks+maxWalk {
		t.Errorf("%d instructions were followed, the limit is %d", u.used, maxWalks)
	}
	// Beyond the limit, a stack takes almost no time.
	start = cmdtest.ProcessorTime()
	for thread := threads; thread < threads+20000; thread++ {
		walk(thread)
	}
	if took := cmdtest.ProcessorTime() - start; took > limited {
		t.Errorf("20,000 threads beyond the limit took %v, those before it %v", took, limited)
	}
	if !u.Exhausted {
		t.Error("the last stacks ended early, but Exhausted is false")
	}
}
