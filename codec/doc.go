// Package codec encodes and decodes compressed backtraces of libwebsockets (lws). It
// is the reference implementation of SPEC.md, which defines the terms used here.
//
//	~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV  ⇄  blob  ⇄  Stack  ⇄  ~b#size: 7520, 0x406651 …
//
// Decoding fills a caller's [Stack], encoding and the line forms append to a caller's
// slice; none of them allocates once those are large enough. Decoding does not depend
// on the machine that wrote a blob: it returns the values as they are written, and in
// [Marks] which of them may have lost their upper bits in the encoder.
//
// Every rejection is an [*Error]: place, field, clause of SPEC.md, reason. Data
// never panics. Nothing here does I/O, keeps state or logs.
//
// # A blob
//
//	bit 0                                                          last two bytes
//	┌───────┬─────────┬─────────┬───┬────────────────────┬─────────┬──────────────┐
//	│ depth │ frame 0 │ frame 1 │ … │ size: count, value │ 0…0     │ length       │
//	│  5+1  │ literal │         │   │ 6+1    count+1     │ 0…7     │ 16, in bytes │
//	└───────┴─────────┴─────────┴───┴────────────────────┴─────────┴──────────────┘
//	         literal:  kind 0 │ count │ value
//	                    1+1   │  6+1  │ count+1
//	         delta:    kind 1 │ back  │ sign  │ count │ value
//	                    1+1   │  3+1  │  1+1  │  6+1  │ count+1
//
// Every field carries one bit more than its width, its spill bit (BT-FIELD-1).
// A stack alone ([AppendBare], [DecodeBare]) ends before the size.
package codec
