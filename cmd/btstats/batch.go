package main

import (
	"io"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
)

// batch is the records of a chunk of a log that could be read.
type batch struct {
	sc      *dump.Scanner
	records []decoded
	pcs     []uint64
	blobs   []byte
}

// decoded is a record of a batch: where its parts end, which begin where those of the
// record before do.
type decoded struct {
	pcs, blob int
	from, to  int // of the text in the chunk
	size      uint64
	marks     codec.Marks
	hasBlob   bool
}

// readParallel adds the records of a log, which several goroutines find and decode.
func (r *reporter) readParallel(g *gathered, src io.Reader, name string) error {
	workers := dump.Workers()
	batches := make([]batch, workers*dump.Lanes)
	for i := range batches {
		sc := dump.NewScanner(nil, "")
		sc.Bare, sc.Word32 = g.sc.Bare, g.sc.Word32
		batches[i].sc = sc
	}
	return dump.NewChunks(src, name).Each(workers, func(lane int, c *dump.Chunk) {
		batches[lane].scan(c)
	}, func(lane int, c *dump.Chunk) error {
		if c.Rest != nil {
			g.sc.ResetChunk(c)
			for g.sc.Next() {
				g.add(g.sc.Record())
			}
			return g.sc.Err()
		}
		batches[lane].addTo(g, c)
		return nil
	})
}

// scan reads a chunk. What it writes for each record is in variables of its own: batches
// stand side by side, and processors that write to one cache line wait for each other.
func (b *batch) scan(c *dump.Chunk) {
	records, pcs, blobs := b.records[:0], b.pcs[:0], b.blobs[:0]
	if sc := b.sc; c.Rest == nil {
		sc.ResetChunk(c)
		for sc.Next() {
			rec := sc.Record()
			if rec.Err != nil {
				continue
			}
			pcs = append(pcs, rec.Stack.PCs...)
			blobs = append(blobs, rec.Blob...)
			from := int(rec.Offset - c.Offset)
			records = append(records, decoded{pcs: len(pcs), blob: len(blobs), from: from, to: from + len(rec.Text),
				size: rec.Stack.Size, marks: rec.Stack.Marks, hasBlob: rec.Blob != nil})
		}
	}
	b.records, b.pcs, b.blobs = records, pcs, blobs
}

// addTo adds the records to what was gathered.
func (b *batch) addTo(g *gathered, c *dump.Chunk) {
	g.sc.Tally().Take(b.sc.Tally())
	pcs, blobs := 0, 0
	s := new(codec.Stack)
	for i := range b.records {
		r := &b.records[i]
		s.PCs, s.Size, s.Marks = b.pcs[pcs:r.pcs], r.size, r.marks
		var blob []byte
		if r.hasBlob {
			blob = b.blobs[blobs:r.blob]
		}
		g.dump.Add(s, blob, c.Data[r.from:r.to])
		g.infer.Add(s, blob)
		pcs, blobs = r.pcs, r.blob
	}
}
