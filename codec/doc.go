// Package codec encodes and decodes compressed backtraces of libwebsockets (lws). It
// is the reference implementation of SPEC.md, which defines the terms used here.
//
//	~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV  ⇄  blob  ⇄  Stack  ⇄  ~b#size: 7520, 0x406651 …
//
// [DecodeLine] reads a line, and a [Decoder] a blob with all that it holds; an [Encoder] makes
// blobs, and [AppendLine] lines of them. Decoding fills the caller's [Stack]; encoding and the line forms append to the
// caller's slice. None of them allocates if these are large enough. Decoding does not
// depend on the machine that wrote a blob: it returns the values as written, and
// reports in [Marks] which of them may have lost their upper bits in the encoder.
//
// Every rejection is an [*Error] with the place, the field, the clause of SPEC.md and
// the reason. No input makes the package panic. The package does no I/O, keeps no state
// and does not log.
package codec
