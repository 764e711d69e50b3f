package dump

import (
	"bytes"
	"io"
	"runtime"
	"sync"
)

// chunkSize is how long a Chunk is at most, in bytes: little enough for a processor's
// cache, together with what is made of it.
const chunkSize = 128 << 10

// Chunk is a part of a log: whole lines, so that no record is in two. Chunks can be
// scanned independently: see [Scanner.ResetChunk].
type Chunk struct {
	Place // of its first byte
	Data  []byte
	Last  bool // nothing follows but what Rest has
	// Rest, if not nil, is what follows, since there is no end of a line in as much
	// as a chunk can hold.
	Rest io.Reader
}

// Chunks cuts a log into chunks.
type Chunks struct {
	src   io.Reader
	place Place
	carry []byte // the beginning of the next chunk
	err   error

	reading sync.Mutex
	number  int64 // of the next chunk
	last    bool  // there is none
}

// NewChunks returns the chunks of the log that src holds. file is the name of the log
// in places.
func NewChunks(src io.Reader, file string) *Chunks {
	return &Chunks{src: src, place: Place{File: file, Line: 1}}
}

// read reads the next chunk, into the memory that c.Data has.
func (s *Chunks) read(c *Chunk) {
	if cap(c.Data) < chunkSize {
		c.Data = make([]byte, chunkSize)
	}
	data := c.Data[:chunkSize]
	n := copy(data, s.carry)
	s.carry = s.carry[:0]
	c.Place, c.Last, c.Rest = s.place, false, nil
	for empty := 0; n < len(data) && !c.Last; {
		got, err := s.src.Read(data[n:])
		n += got
		if empty++; got > 0 {
			empty = 0
		}
		if empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
		if err != nil {
			c.Last = true
			if err != io.EOF {
				s.err = err
			}
		}
	}
	end := n
	if !c.Last {
		end = bytes.LastIndexByte(data[:n], '\n') + 1
		if end == 0 {
			end, c.Last, c.Rest = n, true, s.src
		}
		s.carry = append(s.carry, data[end:n]...)
	}
	c.Data = data[:end]
	s.place.Offset += int64(end)
	s.place.Line += int64(bytes.Count(c.Data, newline))
}

var newline = []byte{'\n'}

// Lanes is how many chunks a worker of [Chunks.Each] has at most: one that it works on,
// and others that wait until those before them have had their turn.
const Lanes = 4

// Each reads the log in as many goroutines as workers; see [Workers]. A worker reads a
// chunk, calls work with it, several at the same time, and then each with it, one at a
// time and in the order of the log. Each ends when each returns an error.
//
// A lane is a place for a chunk and what work makes of it. Lanes are numbered from 0;
// worker i has [Lanes] of them, from i*Lanes on, and calls work and each for them in its
// goroutine, so that their data stay in the cache of one processor. A chunk may wait for
// its turn until the next has been read.
//
//	worker 0   read ─ work ─ each ─ read ─ work ─ each ─ …
//	worker 1          read ─ work ─ each ─ read ─ work ─ each ─ …
func (s *Chunks) Each(workers int, work func(lane int, c *Chunk), each func(lane int, c *Chunk) error) error {
	t := turns{}
	t.next.L, t.over.L = &t, &t
	run := func(worker int) {
		l := lanes{first: worker * Lanes}
		for lane := range Lanes {
			l.free = append(l.free, Lanes-1-lane)
		}
		for s.step(&l, &t, work, each) {
		}
	}
	if workers == 1 {
		run(0)
		return t.err
	}
	for i := range workers {
		go run(i)
	}
	return t.ended()
}

// lanes is what a worker has.
type lanes struct {
	first   int // number of its first lane
	chunks  [Lanes]Chunk
	numbers [Lanes]int64 // of chunks
	free    []int        // the last is taken next: what was used last is in the cache
	waiting []int        // for their turns, in the order of the log
}

// step reads a chunk and works on it, and takes the turns that have come. It returns
// false when there is nothing left to do.
func (s *Chunks) step(l *lanes, t *turns, work func(lane int, c *Chunk), each func(lane int, c *Chunk) error) bool {
	lane := l.free[len(l.free)-1]
	number, ok := s.next(&l.chunks[lane], t)
	if ok {
		work(l.first+lane, &l.chunks[lane])
		t.idle()
		l.numbers[lane] = number
		l.free, l.waiting = l.free[:len(l.free)-1], append(l.waiting, lane)
	}
	for len(l.waiting) > 0 && t.turn(l.numbers[l.waiting[0]], !ok || len(l.free) == 0) {
		lane := l.waiting[0]
		c := &l.chunks[lane]
		err := each(l.first+lane, c)
		if err == nil && c.Last {
			err = s.err
		}
		t.end(c.Last || err != nil, err)
		l.waiting, l.free = append(l.waiting[:0], l.waiting[1:]...), append(l.free, lane)
	}
	return ok && len(l.free) > 0 // no lane is free if there are no more turns
}

// next reads the next chunk and returns its number, if there is one to work on.
func (s *Chunks) next(c *Chunk, t *turns) (number int64, ok bool) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.last || t.isStopped() {
		return 0, false
	}
	s.read(c)
	s.last = c.Last
	number = s.number
	s.number++
	return number, t.start()
}

// turns has the workers of Chunks.Each take turns.
type turns struct {
	sync.Mutex
	next    sync.Cond // done or stopped has changed
	over    sync.Cond // stopped has changed, or busy after that
	done    int64     // turns
	busy    int       // workers that are at work on a chunk
	stopped bool      // there are no more turns
	err     error
}

func (t *turns) isStopped() bool {
	t.Lock()
	defer t.Unlock()
	return t.stopped
}

// start says that a worker has a chunk to work on; it returns false if none is wanted.
func (t *turns) start() bool {
	t.Lock()
	defer t.Unlock()
	if !t.stopped {
		t.busy++
	}
	return !t.stopped
}

// idle says that the work is done.
func (t *turns) idle() {
	t.Lock()
	defer t.Unlock()
	t.busy--
	if t.stopped {
		t.over.Broadcast()
	}
}

// turn reports whether it is the turn of chunk n. It waits for that if wait is set: then
// false means that there are no more turns.
func (t *turns) turn(n int64, wait bool) bool {
	t.Lock()
	defer t.Unlock()
	for wait && t.done != n && !t.stopped {
		t.next.Wait()
	}
	return t.done == n && !t.stopped
}

// end ends a turn.
func (t *turns) end(stop bool, err error) {
	t.Lock()
	defer t.Unlock()
	t.done++
	t.stopped, t.err = stop, err
	t.next.Broadcast()
	if stop {
		t.over.Broadcast()
	}
}

// ended waits until there are no more turns and no worker is at work. It does not wait
// for one that reads: that may last.
func (t *turns) ended() error {
	t.Lock()
	defer t.Unlock()
	for !t.stopped || t.busy > 0 {
		t.over.Wait()
	}
	return t.err
}

// Workers returns a good number of workers for [Chunks.Each]: as many as there are
// processors.
func Workers() int { return runtime.GOMAXPROCS(0) }

// ResetChunk turns to a chunk, and what follows it if it has a Rest. What headers said
// stays as it was: SetState says otherwise.
func (s *Scanner) ResetChunk(c *Chunk) {
	if c.Rest != nil {
		s.ResetAt(io.MultiReader(bytes.NewReader(c.Data), c.Rest), c.Place)
		return
	}
	s.reset(c.Place)
	s.src, s.buf, s.end, s.eof = nothing{}, c.Data, len(c.Data), true
	s.tally.Bytes += int64(s.end)
	if s.end > 0 {
		s.last = c.Data[s.end-1]
	}
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }

// Take adds the counts of another tally, of a part of the log that follows, and
// empties that.
func (t *Tally) Take(o *Tally) {
	t.Bytes += o.Bytes
	t.Lines += o.Lines
	t.Read += o.Read
	for i, n := range o.ByKind {
		t.ByKind[i] += n
	}
	t.Lenient += o.Lenient
	t.Cut += o.Cut
	t.CutByLws += o.CutByLws
	t.Unreadable += o.Unreadable
	t.cuts.take(&o.cuts)
	for reason, f := range o.faults {
		t.fault(reason).take(f)
	}
	*o = Tally{}
}

func (f *Fault) take(o *Fault) {
	f.Count += o.Count
	if o.Count > 0 {
		f.Reason = o.Reason
	}
	for i := 0; i < len(o.Places) && len(f.Places) < MaxPlaces; i++ {
		f.Places = append(f.Places, o.Places[i])
		f.Errs = append(f.Errs, o.Errs[i])
	}
}
