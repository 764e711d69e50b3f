// Package process follows the process that a log describes: its memory map, and the code that
// the code offsets of call paths count.
package process

import (
	"github.com/lwsbt/lwsbt/symbol"
)

// Process is a symbol.Process whose memory map comes from a log.
type Process struct {
	*symbol.Process
	modules map[uint64]*symbol.Module // by module number in the markup
	markup  []byte                    // text from a '{' on that may become an element
	mapped  bool                      // there is a memory map
	wide    bool                      // a mapping extends beyond 32 bits

	code    []symbol.Mapping // see Executable
	known   map[codeKey]bool // mappings in code
	headers bool             // the log has headers, so {{{reset}}} does not begin a boot
	remap   bool             // a complete map follows: the next {{{reset}}} belongs to it
}

// codeKey identifies a mapping by its values.
type codeKey struct {
	start, end, offset uint64
	module             symbol.Module
}

// New opens the files of a configuration, as [symbol.NewProcess] does.
func New(c symbol.Config) (*Process, error) {
	p, err := symbol.NewProcess(c)
	if err != nil {
		return nil, err
	}
	return &Process{Process: p}, nil
}

// Reset discards the memory map and the bases, for a new process or a reboot of the device.
// The files stay open.
func (p *Process) Reset() {
	p.clear()
	p.SetBases(nil)
	p.markup = p.markup[:0]
	p.ResetCode()
}

// Map replaces the memory map by a snapshot.
func (p *Process) Map(list []symbol.Mapping) {
	p.clear()
	p.Process.Map(list)
	for _, m := range list {
		p.note(m)
	}
}

// clear removes all mappings and modules.
func (p *Process) clear() {
	p.Process.Map(nil)
	p.modules, p.mapped, p.wide = nil, false, false
}

// note updates Mapped and MapWord for a mapping.
func (p *Process) note(m symbol.Mapping) {
	if m.Start < m.End {
		p.mapped = true
		p.wide = p.wide || m.End > 1<<32
	}
}

// Remap processes a ~h#map line: the modules and mappings known so far end, and a complete
// map follows. (BT-REC-4)
func (p *Process) Remap() {
	p.clear()
	p.remap = true
}

// Mapped reports whether there is a memory map.
func (p *Process) Mapped() bool { return p.mapped }

// MapWord returns 64 if a mapping extends beyond 32 bits, and 0 if the memory map does not
// show the address size.
func (p *Process) MapWord() int {
	if p.wide {
		return 64
	}
	return 0
}

// Marked records that the log has headers: a {{{reset}}} then does not begin a boot.
// (BT-REC-4)
func (p *Process) Marked() { p.headers = true }

// ResetCode forgets the mappings of [Process.Executable], for a new boot.
func (p *Process) ResetCode() { p.code, p.known, p.remap = nil, nil, false }

// NewLog begins a log, in which no header was read so far.
func (p *Process) NewLog() { p.headers = false }

// Executable returns the executable mappings since the boot, including removed ones, in the
// order of their first line in the log. The code offsets in ~p# lines index this list. The
// caller must not change the list. (BT-CODE-3)
func (p *Process) Executable() []symbol.Mapping { return p.code }

// reset processes a {{{reset}}} and reports whether a boot begins there. (BT-REC-4)
func (p *Process) reset() (boots bool) {
	p.clear()
	if boots = !p.remap && !p.headers; boots {
		p.ResetCode()
	}
	p.remap = false
	return boots
}

// addCode adds a mapping to the list of Executable, unless the log repeats it.
func (p *Process) addCode(m symbol.Mapping) {
	key := codeKey{m.Start, m.End, m.Offset, *m.Module}
	if !m.Exec || m.Start == m.End || p.known[key] || len(p.code) >= maxModules {
		return
	}
	if p.known == nil {
		p.known = map[codeKey]bool{}
	}
	p.known[key] = true
	p.code = append(p.code, m)
}
