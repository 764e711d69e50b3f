// Package recording reads recordings: logs with records of libwebsockets' compressed
// backtraces, headers, events and lines of call paths (Parts II and III of SPEC.md). It takes
// bytes and returns values. It opens no files and names no functions.
//
// A [Scanner] finds the items in a log: records, headers, lines, and the text between them. A
// [Reader] does so for an io.Reader. A [Log] takes the items in order, and returns of each to
// which boot and which dump it belongs, and which dump it closes. A [Dump] adds up what belongs
// to it:
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
