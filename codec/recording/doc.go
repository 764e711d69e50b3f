// Package recording reads recordings: logs with records of libwebsockets' compressed
// backtraces, headers, events and lines of call paths (Parts II and III of SPEC.md). It takes
// bytes and returns values. It opens no files and names no functions.
//
// A [Scanner] finds the items in a log: records, headers, lines, and the text between them. A
// [Reader] does so for an io.Reader. [Log.Add] takes the items in order, and reports the boot and
// the dump of each item, and the dump that the item closes. A [Dump] adds up its items:
//
//	var log recording.Log
//	for it := range recording.Items(text) {
//		p := log.Add(it)
//		if p.Closed != nil {
//			fmt.Println(p.Closed.Begin.Number, p.Closed.Records)
//		}
//		if p.Dump != nil {
//			p.Dump.Add(it, &p)
//		}
//	}
//
// A record that cannot be read is an item, too: its Err says why.
package recording
