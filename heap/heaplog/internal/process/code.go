package process

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/symbol"
)

// Code turns the frames of the call paths of one boot into addresses. (BT-CODE-3)
type Code struct {
	// Problem is what is wrong with the note section of the ELF file, "" if nothing is.
	Problem string

	process  *Process
	given    bool // the user gives the memory map
	ranges   callpath.Ranges
	shift    uint8 // of the boot line, 0 if it has none
	from     codeSource
	mappings []*symbol.Mapping // executable mappings of the log, by index in ranges
	file     *symbol.File      // whose own addresses the ranges are, nil if they are those in memory
}

// codeSource is the source of the code ranges.
type codeSource uint8

const (
	fromNothing codeSource = iota
	fromELF                // the note section or the program headers of the ELF file
	fromMap                // the executable mappings of the log
	fromHeader             // the boot line
)

// maxShift is the largest shift of a boot line; code offsets count units of 2^shift bytes.
const maxShift = 4

// NewCode begins a boot. boot is its ~h#boot line, nil if it has none. given means that the
// memory map is not that of the log.
func NewCode(p *Process, boot *codec.Header, given bool) *Code {
	c := &Code{process: p, given: given}
	if boot != nil {
		c.header(boot)
	}
	if c.from == fromNothing {
		c.elf()
	}
	return c
}

// header takes the code ranges of the boot line. (BT-CODE-1)
func (c *Code) header(boot *codec.Header) {
	shift, _ := boot.Uint("shift")
	c.shift = uint8(min(shift, maxShift))
	code, ok := boot.Get("code")
	if !ok {
		return
	}
	list, _ := codec.ParseRanges(code)
	c.ranges.Shift = c.shift
	for _, x := range list {
		c.ranges.Add(x, "")
	}
	c.from = fromHeader
}

// elf takes the code ranges of the ELF file that the user names. (BT-CODE-3, BT-NOTE-1)
func (c *Code) elf() {
	files := c.process.Current()
	if len(files) == 0 {
		return
	}
	var err error
	if c.ranges, err = layout(files[0]); err != nil {
		c.Problem = err.Error()
	}
	c.from, c.file = fromELF, files[0]
}

// layout returns the code ranges of a file.
func layout(f *symbol.File) (r callpath.Ranges, err error) {
	l, err := f.Layout()
	r.Shift = uint8(l.Shift)
	for _, x := range l.Code {
		r.Add(x, "")
	}
	return r, err
}

// Frames are frames of call paths whose code offsets count the code of the ELF file, each with the number of
// entries that have it.
type Frames map[callpath.Frame]int

// Own returns the addresses of a file that the frames stand for. (BT-CODE-3)
func (list Frames) Own(f *symbol.File) map[uint64]int {
	r, _ := layout(f)
	own := make(map[uint64]int, len(list))
	for x, n := range list {
		if pc, _, ok := r.Address(x); ok {
			own[pc] += n
		}
	}
	return own
}

// Known reports whether anything says where the code is.
func (c *Code) Known() bool { return c.from != fromNothing }

// FromELF reports whether the code ranges are those of the ELF file.
func (c *Code) FromELF() bool { return c.from == fromELF }

// Settle adds the executable mappings that the log has had since the last call, unless the
// boot line has the code ranges. replaced reports that they are the first ones and replace the
// ranges before: the same offsets are then other addresses. (BT-CODE-3)
func (c *Code) Settle() (replaced bool) {
	list := c.process.Executable()
	if c.from == fromHeader || len(list) <= len(c.mappings) {
		return false
	}
	if c.from != fromMap {
		c.ranges, c.from, c.file = callpath.Ranges{Shift: c.shift}, fromMap, nil
		replaced = true
	}
	for _, m := range list[len(c.mappings):] {
		c.mappings = append(c.mappings, &m)
		c.ranges.Add(codec.Range{Start: m.Start, Length: m.End - m.Start}, fmt.Sprintf("%s %s %x", m.Module.Name, m.Module.BuildID, m.Offset))
	}
	return replaced
}

// Address returns the address of a frame. memory reports whether code offsets count addresses in
// memory and not the ELF file's own. ok is false if no range contains the code offset. (BT-CODE-2)
func (c *Code) Address(f callpath.Frame) (pc uint64, memory, ok bool) {
	pc, _, ok = c.ranges.Address(f)
	return pc, c.file == nil, ok
}

// Locate returns the address of a frame with its names. It must not be called when another boot
// has begun. ok is false if no range contains the code offset.
func (c *Code) Locate(f callpath.Frame) (a symbol.Addr, ok bool) {
	pc, index, ok := c.ranges.Address(f)
	switch {
	case !ok:
		return symbol.Addr{}, false
	case c.from == fromMap && index >= 0 && !c.given:
		return c.process.LocateMapping(c.mappings[index], pc), true
	case c.file != nil && !f.Escaped:
		return c.process.LocateIn(c.file, pc), true
	}
	return c.process.Locate(pc), true
}
