package stats

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Sections returns the report as tables.
func (r *Report) Sections() []Section {
	return []Section{r.adviceSection(), r.compressionSection(), r.snipSection()}
}

// adviceSection returns the answers: whether compression is worth it, and which frames need not
// be stored.
func (r *Report) adviceSection() Section {
	s := Section{Title: "Advice", Lead: []string{r.Dump.sentence()}}
	for _, v := range r.Compression.Verdicts {
		s.Lead = append(s.Lead, v.sentence(r.Dump.Records))
	}
	sn, a := &r.Snip, &r.Snip.Recommend
	pre, post := r.settings()
	if a.Pre+a.Post == 0 {
		s.Lead = append(s.Lead, fmt.Sprintf("Recommended: %s.", a.Why))
	} else {
		merged := "No two call paths become the same"
		if a.Merged > 0 {
			merged = fmt.Sprintf("%s of %s call paths become the same as another", text(a.Merged), text(sn.Cells[0].Paths))
		}
		s.Lead = append(s.Lead, fmt.Sprintf("Recommended: %s %d, %s %d, which saves %s of %s bytes (%s): %s. %s.", pre, sn.CapturedPre+a.Pre,
			post, sn.CapturedPost+a.Post, text(a.Saved), count(sn.Cells[0].Bytes), text(percent(ratio(uint64(a.Saved), sn.Cells[0].Bytes))), a.Why, merged))
		t := Table{Title: "Frames that this leaves out", Head: []string{"end", "level", "stacks", "frame", "why"}}
		for _, f := range a.Frames {
			t.Rows = append(t.Rows, []any{f.End, fmt.Sprint(f.Level), f.Stacks, f.Address, f.Why})
		}
		s.Tables = append(s.Tables, t)
	}
	s.Code = slices.Concat(a.CMake, a.Fields)
	if faults := r.Dump.faults(); len(faults.Rows) > 0 {
		s.Tables = append(s.Tables, faults)
	}
	s.Notes = append(s.Notes, fmt.Sprintf("Assumes that the dump was captured with %s %d, %s %d; --captured sets these.", pre, sn.CapturedPre, post, sn.CapturedPost))
	return s
}

// settings returns the names of the settings that leave out innermost and outermost frames.
func (r *Report) settings() (pre, post string) {
	if r.Dump.Log.Device {
		return "skip", "post"
	}
	return "PRE", "POST"
}

// faults returns the table of the records that were left out.
func (d *Dump) faults() Table {
	t := Table{Title: "Unreadable or cut", Head: []string{"reason", "records", "first at"}}
	for _, f := range d.Unreadable {
		t.Rows = append(t.Rows, []any{f.Reason, f.Count, strings.Join(f.First, "\n")})
	}
	if d.Cut > 0 {
		t.Rows = append(t.Rows, []any{"cut", d.Cut, strings.Join(d.CutAt, "\n")})
	}
	return t
}

func (r *Report) compressionSection() Section {
	c := &r.Compression
	s := Section{Title: "Compression"}
	total := Table{Title: "Total bytes",
		Head: []string{"form", "bytes", "of raw 32", "of raw 64", "per block", "bits per frame"}}
	for _, f := range c.Forms {
		name := f.Name
		if f.Estimated && f.Name != FormRecorded && f.Name != FormLws {
			name += " ~"
		}
		total.Rows = append(total.Rows, []any{name, f.Bytes, percent(f.OfRaw32), percent(f.OfRaw64), decimal(f.Mean), decimal(f.PerFrame)})
	}
	s.Tables = []Table{total, r.overhead()}
	if c.Recorded > 0 && c.Recorded < r.Dump.Records {
		s.Notes = append(s.Notes, fmt.Sprintf("%s of %s blobs are as recorded, the others what lws would have written.",
			count(c.Recorded), count(r.Dump.Records)))
	}
	if c.Lossy {
		note := "~ marks numbers computed from estimated addresses, since the encoder dropped their upper bits. "
		if c.Differ == 0 {
			note += fmt.Sprintf("Encoded again as lws does, all %s blobs have the recorded length, to the bit.", count(c.Compared))
		} else {
			note += fmt.Sprintf("Encoded again as lws does, %s of %s blobs have another length than recorded.",
				count(c.Differ), count(c.Compared))
		}
		s.Notes = append(s.Notes, note)
	} else if c.Differ > 0 {
		who := "was this dump written by another encoder than lws's?"
		if r.Dump.Log.Device {
			who = "device/ chooses the shortest."
		}
		s.Notes = append(s.Notes, fmt.Sprintf("Encoded again as lws does, %s of %s blobs have another length than "+
			"recorded: %s", count(c.Differ), count(c.Compared), who))
	}
	if r.Dump.PayloadOver {
		s.Notes = append(s.Notes, "The sizes of the blocks add up to 2^64-1 bytes or more, which is what the share of the heap is of.")
	}
	if !r.Dump.Log.Device { // (BT-MEM-3)
		s.Notes = append(s.Notes, "The wrapper that LWS_WITH_ALLOC_METADATA_LWS puts around lws's own allocations adds the metadata twice.")
	}
	return s
}

// sentence says what the report is on, and what it leaves out.
func (d *Dump) sentence() string {
	text := fmt.Sprintf("%s, %s, machine %s", printable.Count(d.Records, "record"), printable.Count(d.DistinctPaths, "distinct call path"), d.Machine)
	if !d.MachineSure {
		text += " (a guess; --machine sets it)"
	}
	if n := d.unreadable() + d.Cut; n > 0 {
		text += fmt.Sprintf("; %s unreadable or cut", printable.Count(n, "other"))
	}
	return text + "."
}

// unreadable returns the number of unreadable records.
func (d *Dump) unreadable() (n int64) {
	for _, f := range d.Unreadable {
		n += f.Count
	}
	return n
}

func (v Verdict) sentence(records uint64) string {
	switch {
	case !v.Fits:
		return fmt.Sprintf("%d-bit words: these addresses do not fit them.", v.Word)
	case v.Loses:
		best := "search best does not"
		if v.BestToo {
			best = "search best adds some, too"
		}
		return fmt.Sprintf("%d-bit words: compression adds %.1f%% to raw stacks (%s); %s of %s blobs are larger than their raw stack.",
			v.Word, 100*v.LargerBy, best, count(v.Worse), count(records))
	}
	return fmt.Sprintf("%d-bit words: compression saves %.1f%% of raw stacks; %s of %s blobs are larger than their raw stack.",
		v.Word, -100*v.LargerBy, count(v.Worse), count(records))
}

func (r *Report) snipSection() Section {
	sn := &r.Snip
	pre, post := r.settings()
	title := "SNIP_PRE and SNIP_POST"
	full := "32 frames, the most that lws captures"
	if r.Dump.Log.Device {
		title = "Frames to leave out: skip and post"
		full = "31 frames, the most by default (LWSBT_HEAP_DEPTH)"
	}
	s := Section{Title: title}
	grid := func(title string, cell func(SnipCell) any) {
		t := Table{Title: title, Head: []string{""}}
		for n := range MaxSnip + 1 {
			t.Head = append(t.Head, fmt.Sprintf("%s %d", post, sn.CapturedPost+n))
		}
		for n := range MaxSnip + 1 {
			row := []any{fmt.Sprintf("%s %d", pre, sn.CapturedPre+n)}
			for m := range MaxSnip + 1 {
				row = append(row, cell(sn.Cells[n*(MaxSnip+1)+m]))
			}
			t.Rows = append(t.Rows, row)
		}
		s.Tables = append(s.Tables, t)
	}
	grid("Mean blob, bytes", func(c SnipCell) any { return decimal(c.Mean) })
	grid("Relative to raw stacks of the same frames, in words of the machine", func(c SnipCell) any { return percent(c.Ratio) })
	grid("Bytes saved over the dump", func(c SnipCell) any { return c.Saved })
	grid("Distinct call paths", func(c SnipCell) any { return c.Paths })
	if sn.Full > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%s have %s: with a larger %s or %s, frames "+
			"farther out would take the place of those left out, so these cost more than the tables say.", printable.Count(sn.Full, "stack"), full, pre, post))
	}
	return s
}

// overhead returns the table of what the metadata takes in memory.
func (r *Report) overhead() Table {
	unit := "a pointer"
	if r.Dump.Log.Device {
		unit = "two words (LWSBT_ALIGN)"
	}
	t := Table{Title: "Metadata in memory: blobs, padding to " + unit + ", and list nodes", Head: []string{"target", "bytes", "per allocation", "of the heap"}}
	for _, o := range r.Overhead {
		t.Rows = append(t.Rows, []any{fmt.Sprintf("%d-bit", o.Word), o.Total, decimal(o.Mean), percent(o.Share)})
	}
	return t
}
