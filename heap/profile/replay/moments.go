package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// moments keeps what was live at moments that are step apart, and after the last event of each boot. How
// long the events last is not known: where there are too many, every second one goes.
type moments struct {
	n           int // half of the largest number, 0 if none are wanted
	step        time.Duration
	start, next time.Duration // of the boot, and the next moment of it
	list        []*profile.Dump
	ends        int // the first dumps of list, of boots that have ended
}

const firstStep = 64 * time.Microsecond

// Keep keeps, from the first event on, what is live at moments at equal intervals: n to 2n of them for
// each boot of some milliseconds or more.
func (r *Replay) Keep(n int) { r.moments = moments{n: n, step: firstStep} }

// Moments returns what was live at the moments of Keep, and after the last event of each boot.
func (r *Replay) Moments() []*profile.Dump {
	list := r.moments.list
	if r.moments.n > 0 && r.totals.Events > 0 {
		list = append(slices.Clip(list), r.moment(r.latestTime))
	}
	for i, d := range list {
		d.Index, d.Number = i, int64(i+1)
	}
	return list
}

// reach keeps the moments before an event.
func (r *Replay) reach(e *Event) {
	m := &r.moments
	switch {
	case r.totals.Events == 0:
		m.start, m.next = e.Time, e.Time+m.step
	case e.Boot != r.boot:
		m.list = append(m.list, r.moment(r.latestTime))
		m.ends, m.step = len(m.list), firstStep
		m.start, m.next = e.Time, e.Time+m.step
	}
	for e.Time > m.next {
		m.list = append(m.list, r.moment(m.next))
		if m.next += m.step; len(m.list)-m.ends >= 2*m.n {
			m.thin()
		}
	}
}

// thin removes every second moment of the boot.
func (m *moments) thin() {
	kept := m.list[:m.ends]
	for i, d := range m.list[m.ends:] {
		if i%2 == 1 {
			kept = append(kept, d)
		}
	}
	clear(m.list[len(kept):])
	m.list = kept
	m.step *= 2
	m.next = m.start + time.Duration(len(kept)-m.ends+1)*m.step
}

// moment returns what is live, as of a time.
func (r *Replay) moment(at time.Duration) *profile.Dump {
	d := r.Live(at)
	d.Name = fmt.Sprintf("live at %.3f s", at.Seconds())
	return d
}
