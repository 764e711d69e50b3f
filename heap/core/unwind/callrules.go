package unwind

import (
	"cmp"
	"debug/elf"
	"slices"
)

// CallRule is the way from a frame to its caller, after a call. The CFA is the stack pointer of
// the caller before its call.
type CallRule struct {
	After   uint64 // address in the file, of the instruction after the call
	FromFP  bool   // the CFA is relative to the frame pointer, else to the stack pointer
	CFA     int64  // bytes from that register to the CFA
	RA, FP  int64  // bytes from the CFA to the return address, and to the caller's frame pointer
	FPSaved bool   // else the frame pointer is unchanged
}

// CallRules returns the rules of all calls that it finds by reading the code, by address. A
// function is followed from its start along all branches, as by [Unwinder.Walk].
func (o *Object) CallRules() []CallRule {
	o.findStarts()
	o.findPointers()
	m := &Module{Object: o}
	u := &Unwinder{Memory: noMemory{}, Modules: []*Module{m}, pops: map[uint64]int64{}}
	found := map[uint64]reachedCall{}
	for i := 0; i < len(o.starts); i++ {
		start, end, ok := o.startOf(o.starts[i])
		if !ok {
			continue
		}
		u.used = 0
		w := &walker{Unwinder: u, arch: o.arch, left: maxWalk, steps: maxSteps}
		w.follow(&follower{path: path{m: m, start: start, end: end, pc: ^uint64(0)}, after: func(at uint64, s *state, calls int) {
			r, ok := o.arch.callRule(at, s)
			old, again := found[at]
			switch {
			case !ok || again && calls > old.calls:
			case again && calls == old.calls && r != old.CallRule:
				found[at] = reachedCall{old.CallRule, calls, true}
			case !again || calls < old.calls:
				found[at] = reachedCall{r, calls, false}
			}
		}})
	}
	var list []CallRule
	for _, r := range found {
		if !r.ambiguous {
			list = append(list, r.CallRule)
		}
	}
	slices.SortFunc(list, func(a, b CallRule) int { return cmp.Compare(a.After, b.After) })
	return list
}

// reachedCall is the rule of a call that was reached, by the path with the least calls since a jump:
// after a call that does not return, the code may be of another function.
type reachedCall struct {
	CallRule
	calls     int
	ambiguous bool // another such path gives another rule
}

// callRule returns the rule of a state after a call.
func (a *machine) callRule(at uint64, s *state) (r CallRule, ok bool) {
	r = CallRule{After: at}
	pushed := int64(0) // bytes between the CFA and the stack pointer at the start of the function
	if a.ra < 0 {
		pushed = int64(a.word)
	}
	v := s.get(a.sp)
	if v.base != baseReg+a.sp {
		v, r.FromFP = s.get(a.fp), true
	}
	if v.base != baseReg+a.sp {
		return r, false
	}
	r.CFA = pushed - a.signed(v.off)
	if a.machine == elf.EM_X86_64 && r.CFA%16 != 0 && !r.FromFP {
		return r, false // the ABI wants the stack aligned at calls: the code is not of this function
	}
	if r.RA = -pushed; a.ra >= 0 {
		if r.RA, ok = a.saves(s, a.ra); !ok {
			return r, false
		}
	}
	if r.FP, r.FPSaved = a.saves(s, a.fp); r.FPSaved {
		r.FP -= pushed
		return r, true
	}
	return r, s.get(a.fp) == value{baseReg + a.fp, 0}
}

// saves returns where the function saved the value that a register had at its start: in bytes
// from the stack pointer at its start.
func (a *machine) saves(s *state, r int) (off int64, ok bool) {
	for _, c := range s.cells {
		if c.at.base == baseReg+a.sp && c.v == (value{baseReg + r, 0}) && c.size == int(a.word) {
			if v, found := s.lookup(c.at, c.size); found && v == c.v {
				return a.signed(c.at.off), true
			}
		}
	}
	return 0, false
}

// signed returns an offset in an address as a signed number.
func (a *machine) signed(off uint64) int64 {
	shift := 64 - 8*a.word
	return int64(off<<shift) >> shift
}

type noMemory struct{}

func (noMemory) Read([]byte, uint64) int { return 0 }

// findPointers adds the functions whose addresses are in the data of a file, where the dynamic
// linker adds the load base to them.
func (o *Object) findPointers() {
	if o.symbols {
		return
	}
	e, err := elf.NewFile(o.file)
	if err != nil {
		return
	}
	relative := map[elf.Machine]uint64{elf.EM_X86_64: uint64(elf.R_X86_64_RELATIVE), elf.EM_AARCH64: uint64(elf.R_AARCH64_RELATIVE),
		elf.EM_RISCV: uint64(elf.R_RISCV_RELATIVE)}[o.Machine]
	for _, s := range e.Sections {
		if s.Type != elf.SHT_RELA || o.Class != elf.ELFCLASS64 || relative == 0 || s.Size > maxSection {
			continue
		}
		b, err := s.Data()
		for ; err == nil && len(b) >= 24; b = b[24:] {
			if to := o.Order.Uint64(b[16:]); o.Order.Uint64(b[8:]) == relative && o.inText(to) && !o.inPLT(to) {
				o.starts = append(o.starts, to)
			}
		}
	}
	slices.Sort(o.starts)
	o.starts = slices.Compact(o.starts)
}
