// Package dump finds the records of libwebsockets' compressed backtraces in logs, among
// any other text.
//
//	log ─ Open, Follow ─→ bytes ─ Scanner ─→ Record, Record, …   and the text between them
//	                                 │
//	                                 └→ Tally: what was read, what was not, why and where
//
// A [Scanner] takes one pass over a log in constant memory, whatever the length
// of its lines, and allocates nothing for a record that can be read. Every byte
// of the log belongs either to the Text of exactly one [Record] or to the text
// that goes to Scanner.Text, in the log's order: writing both reproduces the log.
//
//	in, err := dump.Open(path, os.Stdin)
//	sc := dump.NewScanner(in, in.Name)
//	for sc.Next() {
//		switch rec := sc.Record(); {
//		case rec.Err == nil: // rec.Stack is what the record says
//		case rec.Cut: // rec.Stack.PCs are the complete frames
//		default: // rec.Err says why it could not be read
//		}
//	}
//	err = sc.Err() // an error of reading the log, not of its records
//
// The base64 of a record is read leniently (BT-B64-3), but a record ends at the first
// character outside both alphabets (BT-TEXT-3). An [Inference] infers from the records
// of a dump which machine wrote it.
package dump
