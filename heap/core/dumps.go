package core

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/heap/core/crash"
)

// addDump adds a crash dump of another system.
func (m *Image) addDump(s *source) error {
	d, err := crash.Read(s.data)
	if errors.Is(err, crash.ErrFormat) {
		return fmt.Errorf("%s: not a core file, a crash dump, Intel HEX or S-records; raw memory needs its address: 0xADDR=%s", s.name, s.name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for _, text := range d.Damage {
		m.notes.add("%s: %s", s.name, text)
	}
	m.About = append(m.About, d.About...)
	if d.Core != nil {
		return m.addCore(&source{name: s.name, data: d.Core})
	}
	if err := m.agree(s.name, &header{word: d.Word, order: binary.LittleEndian, machine: d.Machine}); err != nil {
		return err
	}
	for i := range d.Threads {
		m.Threads = append(m.Threads, ThreadOf(d.Machine, d.Word, &d.Threads[i]))
	}
	for _, x := range d.Memory {
		m.add(Segment{Addr: x.Addr, Data: x.Data, Write: true})
	}
	for _, x := range d.Modules {
		if x.Size > 0 && x.Base+x.Size > x.Base {
			m.files = append(m.files, Map{Start: x.Base, End: x.Base + x.Size, File: x.Path, buildID: x.BuildID})
		}
	}
	m.joinMaps()
	return nil
}

// ThreadOf returns a thread of a crash dump.
func ThreadOf(machine elf.Machine, word int, from *crash.Thread) Thread {
	t := Thread{ID: int(from.ID), Name: from.Name, Signal: from.Signal, Crashed: from.Crashed, PC: from.PC, Regs: from.Regs}
	l, ok := layoutOf(machine, word)
	if !ok {
		return t
	}
	t.Values = make([]uint64, l.count)
	for reg, i := range l.dwarf {
		t.Values[i] = from.Regs[reg]
	}
	t.Values[l.pc] = from.PC
	t.SP = t.Values[l.sp]
	if machine == elf.EM_ARM {
		t.Values[armStatus] = from.Status
	}
	return t
}
