// Package heaplog reads heap dumps and allocation events from logs: records of
// libwebsockets' compressed backtraces among any other text. It names their call paths
// from ELF files and memory maps.
//
//	r, err := heaplog.Open(ctx, heaplog.Files("heap.log"), heaplog.Exe("fw.elf"))
//	if err != nil {
//		return err
//	}
//	defer r.Close()
//	for d, err := range r.Dumps() {
//		if err != nil {
//			return err
//		}
//		for a := range d.Allocations() {
//			for f := range a.Frames() {
//				fmt.Println(a.Bytes, f.Name, f.File, f.Line)
//			}
//		}
//	}
//
// [Reader.Dumps] yields whole dumps, [Reader.Events] allocations and frees one by one, and
// [Reader.Items] every record and all text between the records, in the order of the log.
// Each call of one of them is a pass over the log. A pass runs in the caller's goroutine.
// A Reader is for one goroutine, and one pass, at a time.
//
// # What is inferred
//
// A dump begins at a ~h#begin line, at a boot, at a line that matches [Split], or where
// records repeat the beginning of the dump before. Position-independent files without a
// memory map get the load base at which most addresses follow a call; the log is read
// twice for that. Bits that an encoder dropped are recovered from the map or the bases.
//
// # Errors and losses
//
// A [*ReadError] ends one input, and the next input follows if the loop goes on. Any other
// error ends the pass. Before either, the unfinished dump is yielded, with Complete false.
// A record that cannot be read is never an error: it is an [Item] with Err, a count in the
// Loss of its dump, and a [Fault] in the [Summary]. An address without a name has a
// reason: see symbol.Addr.Missing. A log without any record ends with [ErrNoRecord].
package heaplog
