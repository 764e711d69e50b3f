package forms

import "strings"

// Facts is what a log says of addresses, whatever the record: people who look at an issue have the
// log and not the ELF file.
type Facts struct {
	frames map[uint64][]Frame
	memory map[uint64]string // name of the memory that a block is in
	last   uint64            // the address that was named last, 0 if it was known
}

// Frame is a function at an address. File is "" and Line 0 if they are not known.
type Frame struct {
	Func, File string
	Line       int
}

// maxFacts is the number of addresses of which a log may say something.
const maxFacts = 1 << 16

// NoNames reports whether the log has named no address.
func (f *Facts) NoNames() bool { return len(f.frames) == 0 }

// Frames returns the functions at an address, innermost inlined first.
func (f *Facts) Frames(pc uint64) []Frame { return f.frames[pc] }

// Memory returns the name of the memory that holds a block, "" if the log does not tell.
func (f *Facts) Memory(address uint64) string { return f.memory[address] }

// addName names an address. The first name counts.
func (f *Facts) addName(pc uint64, name, file string, line int64) {
	if f.last = pc; f.frames[pc] != nil || name == "" || len(f.frames) >= maxFacts {
		f.last = 0
		return
	}
	if f.frames == nil {
		f.frames = map[uint64][]Frame{}
	}
	f.addInlined(name, file, line)
}

// addInlined names the function that the one named last was inlined into.
func (f *Facts) addInlined(name, file string, line int64) {
	if f.last != 0 && len(f.frames[f.last]) < maxFrames {
		f.frames[f.last] = append(f.frames[f.last], Frame{strings.Clone(name), strings.Clone(file), int(max(line, 0))})
	}
}

// addMemory says which memory holds a block.
func (f *Facts) addMemory(address uint64, name string) {
	if name == "" || len(f.memory) >= maxFacts {
		return
	}
	if f.memory == nil {
		f.memory = map[uint64]string{}
	}
	f.memory[address] = name
}

func (s *state) nameLine(m match) {
	s.addName(m.hex("address"), m.text("func"), m.text("file"), m.number("line"))
}

func (s *state) inlinedLine(m match) { s.addInlined(m.text("func"), m.text("file"), m.number("line")) }
