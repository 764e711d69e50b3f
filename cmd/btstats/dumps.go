package main

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/codec/recording/reconcile"
)

// dumps counts the records of dumps that have headers as btheap does: damaged ones as what they were, or not at
// all. Others count as they are read.
type dumps struct {
	g       *gathered
	log     recording.Log
	dump    *recording.Dump // the last one, until what follows it is known
	records reconcile.Reconciler[*codec.Stack, *waiting]
	stacks  map[string]*codec.Stack // one for each call path
	key     []byte
	heaps   map[string]uint64 // sizes in bytes by name, of this boot
	sum     reconcile.Announced
}

// waiting is a record that waits for the end of its dump.
type waiting struct {
	codec.Stack
	blob, memory []byte
	cut          bool
}

// open reports whether the next item is in a dump with headers whose records are blocks.
func (d *dumps) open() bool { return d.dump != nil && d.dump.End == nil }

// header takes a header.
func (d *dumps) header(it *recording.Item) {
	switch it.Header.Verb {
	case codec.VerbBoot:
		d.finish()
		d.heaps = nil
	case codec.VerbHeap:
		if d.heaps == nil {
			d.heaps = map[string]uint64{}
		}
		name, _ := it.Header.Get("name")
		size, known := it.Header.Uint("size")
		if !known {
			size = math.MaxUint64
		}
		d.heaps[name] = size
	case codec.VerbBegin:
		d.finish()
	}
	p := d.log.Add(it)
	if it.Header.Verb == codec.VerbBoot || it.Header.Verb == codec.VerbBegin {
		d.records.Begin(p.Boot.Number, p.Boot.Header, reconcile.Ranges(p.Boot.Header, "code"))
	}
	if _, paths := it.Header.Get("k"); it.Header.Verb == codec.VerbBegin && !paths {
		d.dump, d.sum = p.Dump, reconcile.Announced{}
	}
}

// add takes a record of a dump.
func (d *dumps) add(it *recording.Item) {
	if it.Stack == nil || it.Err != nil && it.Cut == nil {
		d.records.Unreadable(it)
		return
	}
	h := d.record(it)
	if it.User != nil {
		_, h.Addressed = it.User.Get(codec.TagAddress)
	}
	if it.Cut != nil && !it.Cut.Sized {
		h.Bytes = 0
	}
	if waits := d.records.Add(it, h); waits != nil {
		waits.Of = &waiting{codec.Stack{PCs: h.Path.PCs, Size: it.Stack.Size, Marks: it.Stack.Marks}, bytes.Clone(it.Blob), bytes.Clone(d.g.inMemory(it)), it.Cut != nil}
		return
	}
	d.count(it.Stack, it.Blob, d.g.inMemory(it))
}

func (d *dumps) record(it *recording.Item) reconcile.Record[*codec.Stack, *waiting] {
	return reconcile.Record[*codec.Stack, *waiting]{Path: d.stackOf(it), Bytes: it.Stack.Size, Fields: it.User != nil}
}

// stackOf returns the stack that stands for the call path of a record.
func (d *dumps) stackOf(it *recording.Item) *codec.Stack {
	if it.Memo != nil {
		if s, ok := (*it.Memo).(*codec.Stack); ok {
			return s
		}
	}
	d.key = binary.LittleEndian.AppendUint32(d.key[:0], it.Stack.Marks.Lossy)
	for _, pc := range it.Stack.PCs {
		d.key = binary.LittleEndian.AppendUint64(d.key, pc)
	}
	s := d.stacks[string(d.key)]
	if s == nil {
		if d.stacks == nil {
			d.stacks = map[string]*codec.Stack{}
		}
		s = &codec.Stack{PCs: slices.Clone(it.Stack.PCs), Marks: it.Stack.Marks}
		d.stacks[string(d.key)] = s
	}
	if it.Memo != nil {
		*it.Memo = s
	}
	return s
}

func (d *dumps) count(s *codec.Stack, blob, memory []byte) {
	d.sum.N++
	d.sum.B += s.Size
	d.g.add(s, blob, memory)
}

// finish counts the records of the last dump that have waited. (BT-HEAD-4)
func (d *dumps) finish() {
	if d.dump == nil {
		return
	}
	end := d.records.End(d.dump, reconcile.HeapSize(d.log.Boot().Header, slices.Collect(maps.Values(d.heaps))))
	for i := range end.Counts {
		switch h := &end.Counts[i]; {
		case h.Restored || h.Of == nil:
			d.count(&codec.Stack{PCs: h.Path.PCs, Marks: h.Path.Marks, Size: h.Bytes}, nil, nil)
		case h.Of.cut:
		default:
			d.count(&h.Of.Stack, h.Of.blob, h.Of.memory)
		}
	}
	d.g.restored += end.Restored
	d.g.damaged += end.Left
	if said := end.Said; d.dump.End != nil && (said.HasN && said.N != d.sum.N || said.HasB && said.B != d.sum.B) {
		d.g.unlike++
	}
	d.dump = nil
}
