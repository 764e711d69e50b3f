// Package heaplog reads heap dumps and allocation events from logs. A log holds records of
// libwebsockets' compressed backtraces among other text. The package names the functions of
// the call paths with the help of ELF files and memory maps.
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
// [Reader.Dumps] yields whole dumps, [Reader.Events] single allocations and frees, and
// [Reader.Items] every record and all text between the records, in the order of the log.
// Each call of one of these methods is a pass over the log. A pass runs in the caller's
// goroutine. Only one goroutine may use a Reader, for one pass at a time.
//
// # Inference
//
// A dump begins at a ~h#begin line, at a boot, at a line that matches [Split], or where
// records repeat the beginning of the previous dump. For a position-independent file without
// a memory map, the package infers the load base: it chooses the base with which the largest
// number of return addresses directly follow a call instruction. To do this, it reads the log
// twice. Bits that an encoder dropped are recovered from the memory map or the load bases.
//
// # Errors and losses
//
// A [*ReadError] ends one input; if the loop continues, the next input follows. Any other
// error ends the pass. When an error occurs, Dumps first yields the unfinished dump, whose
// Complete method returns false, and then the error. A record that cannot be read is never an
// error. It is an [Item] with Err, a count in the Loss of its dump, and a [Fault] in the
// [Summary]. An address without a name has a reason: see symbol.Addr.Missing. A log without any
// record ends with [ErrNoRecord].
package heaplog
