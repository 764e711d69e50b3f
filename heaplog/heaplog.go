package heaplog

import (
	"context"
	"iter"

	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Reader reads logs. See [Open].
type Reader struct {
	ctx context.Context
	config
}

// Open opens logs as the options say. The context ends every pass. Errors name the option.
// Close the Reader after use.
func Open(ctx context.Context, options ...Option) (*Reader, error) { panic("to do") }

// Close closes all files and removes temporary ones.
func (r *Reader) Close() error { panic("to do") }

// Dumps yields each dump when it is whole. A recording that has events alone yields one dump
// at the end: what they left live.
func (r *Reader) Dumps() iter.Seq2[*profile.Dump, error] { panic("to do") }

// Events yields the allocation events of a recording: allocations, frees, moves. An Event is
// valid until the next.
// (comes with profile.Event)
// func (r *Reader) Events() iter.Seq2[*profile.Event, error]

// Items yields everything in the log in order, in constant memory.
func (r *Reader) Items() iter.Seq2[*Item, error] { panic("to do") }

// Locate returns what is known of a code address at the current item of a pass, as of the
// addresses that a panic prints as text.
func (r *Reader) Locate(pc uint64) symbol.Addr { panic("to do") }

// Summary returns what the pass met so far, or all of what the last pass met.
func (r *Reader) Summary() Summary { panic("to do") }
