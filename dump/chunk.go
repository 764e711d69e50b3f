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

// Each reads the log. As many goroutines as workers, for which Workers is a good number,
// call work with their number from 0 and chunk after chunk; and each is called with the same, in the order of the log and by
// the caller, until it returns false or an error. What a worker made of its chunk is
// not touched until then.
//
//	src ─ cut ─┬─ work(0, chunk) ─┬─ each(0, chunk), each(1, chunk), …
//	           └─ work(1, chunk) ─┘
func (s *Chunks) Each(workers int, work func(worker int, c *Chunk), each func(worker int, c *Chunk) (more bool, err error)) error {
	type lane struct {
		Chunk
		free, full, done chan bool
	}
	lanes := make([]lane, workers)
	stop := make(chan bool)
	var running sync.WaitGroup
	defer running.Wait()
	defer close(stop)
	for i := range lanes {
		l := &lanes[i]
		l.free, l.full, l.done = make(chan bool, 1), make(chan bool, 1), make(chan bool, 1)
		l.free <- true
		running.Go(func() {
			for {
				select {
				case <-l.full:
				case <-stop:
					return
				}
				work(i, &l.Chunk)
				l.done <- true
			}
		})
	}
	go func() { // not waited for: a read may last
		for i := 0; ; i = (i + 1) % len(lanes) {
			l := &lanes[i]
			select {
			case <-l.free:
			case <-stop:
				return
			}
			s.read(&l.Chunk)
			last := l.Last
			l.full <- true
			if last {
				return
			}
		}
	}()
	for i := 0; ; i = (i + 1) % len(lanes) {
		l := &lanes[i]
		<-l.done
		more, err := each(i, &l.Chunk)
		switch {
		case err != nil:
			return err
		case l.Last:
			return s.err
		case !more:
			return nil
		}
		l.free <- true
	}
}

// Workers returns how many workers use the processors that there are: with several, one
// more, since one waits for its turn.
func Workers() int {
	if n := runtime.GOMAXPROCS(0); n > 1 {
		return n + 1
	}
	return 1
}

// ResetChunk turns to a chunk, and what follows it if it has a Rest. Whether blobs have
// user fields stays as it was: SetUserFields says otherwise.
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

// UserFields reports whether blobs have user fields from here on, as a header said;
// SetUserFields sets that for a chunk.
func (s *Scanner) UserFields() bool { return s.user }

// SetUserFields sets what UserFields reports.
func (s *Scanner) SetUserFields(has bool) { s.user = has }

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
