package main

import (
	"encoding/binary"
	"regexp"
	"strings"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/symbol"
)

// hider says which functions --fold hides.
func hider(fold *regexp.Regexp) func(fn string) bool {
	if fold == nil {
		return func(string) bool { return false }
	}
	seen := map[string]bool{}
	return func(fn string) bool {
		h, ok := seen[fn]
		if !ok {
			h = fold.MatchString(fn)
			seen[fn] = h
		}
		return h
	}
}

// stacks adds up records with the same call stack.
type stacks struct {
	hide   func(fn string) bool
	file   func(path string) string
	byKey  map[string]*stack
	list   []*stack // in the order of the log
	noSize int64    // cut records that lost their size
	spots  map[spotID]*symbol.Location
	key    []byte
}

// stack is a distinct call stack and what it holds.
type stack struct {
	places []symbol.FrameAddr // innermost first
	bytes  int64
	count  int64
}

// spotID tells addresses apart where nothing is looked up.
type spotID struct {
	pc    uint64
	state symbol.State
}

func newStacks(o *options) *stacks {
	return &stacks{hide: hider(o.foldRE), file: o.file, byKey: map[string]*stack{}, spots: map[spotID]*symbol.Location{}}
}

func (s *stacks) record(rec *dump.Record, fixed symbol.Recovery, places []symbol.FrameAddr) error {
	if rec.Cut && !rec.Sized {
		s.noSize++
	}
	if places == nil {
		for i, pc := range rec.Stack.PCs {
			id := spotID{pc, fixed.State(i)}
			if s.spots[id] == nil {
				s.spots[id] = &symbol.Location{PC: pc, LookupPC: pc}
			}
			places = append(places, symbol.FrameAddr{Location: s.spots[id], State: id.state})
		}
	}
	s.key = s.key[:0]
	for _, p := range places {
		s.key = append(binary.LittleEndian.AppendUint64(s.key, p.PC), byte(p.State))
		if p.File != nil { // files may share own addresses, and spaces addresses
			s.key = append(s.key, p.Module...)
			s.key = binary.LittleEndian.AppendUint64(s.key, p.ObjAddr)
		}
	}
	st := s.byKey[string(s.key)]
	if st == nil {
		st = &stack{places: append([]symbol.FrameAddr(nil), places...)}
		s.byKey[string(s.key)] = st
		s.list = append(s.list, st)
	}
	st.count++
	st.bytes += int64(min(rec.Stack.Size, 1<<62))
	return nil
}

func (s *stacks) unreadable(*dump.Record) error { return nil }

// site is a frame as reports name it.
type site struct {
	fn, file string
	line     int
}

// name is the function, or the address where none is known.
func (f site) name() string { return orUnknown(f.fn) }

// sites lists the frames of a stack that are not hidden, innermost first.
func (s *stacks) sites(st *stack) (list []site) {
	for _, p := range st.places {
		if len(p.Frames) == 0 {
			list = append(list, site{fn: address(p)})
			continue
		}
		for _, f := range p.Frames {
			if s.hide(f.Name) {
				continue
			}
			fn := f.Name
			if fn == "" {
				fn = address(p)
			}
			list = append(list, site{fn: fn, file: s.file(f.File), line: f.Line})
		}
	}
	return list
}

// address names a place by its address, as well as that is known.
func address(p symbol.FrameAddr) string {
	switch {
	case p.State == symbol.Lost:
		return "?" + strings.TrimPrefix(hex(p.PC&(1<<31-1)), "0x")
	case p.Module != "":
		return p.Module[strings.LastIndex(p.Module, "/")+1:] + "+" + hex(p.ObjAddr)
	}
	return hex(p.PC)
}
