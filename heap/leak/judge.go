package leak

import (
	"fmt"
	"math"
	"slices"
)

// hardly is the largest probability of none, and minNone the least number of intervals.
const (
	hardly  = 0.1
	minNone = 4
)

// minPoints is the least number of points of a boot that is examined, and of the intervals that are
// evidence for a leak.
const minPoints = 3

// preferMore is by how much less certain more boots may be: they know the rate better.
const preferMore = 0.3

// Judge judges a series: its last boot, the last two, four ... boots, and all of them. It keeps what is
// most certain. If the boots of the present firmware, or the last boot, exclude the former rate, only these
// count. What is not sure is judged by every second, fourth, eighth ... point, too: more points are never less certain.
func Judge(s Series) Judgement {
	j, _ := s.answered()
	return j
}

// answered is Judge. It returns the reduced boots, too.
func (s Series) answered() (j Judgement, boots []*boot) {
	j, boots = s.judge()
	if j.answer(); j.Verdict == None && s.Kind == Heap && len(s.Boots) <= maxFormer {
		s.former(&j)
	}
	return j, boots
}

// maxFormer is the largest number of boots of which the first parts are judged, too.
const maxFormer = 8

// former takes back that a heap does not leak if some first part of it does, and what follows does not exclude that: more points of a leak
// never turn it into none.
func (s Series) former(j *Judgement) {
	for _, part := range []float64{0.5, 0.75, 0.9} {
		f := s
		f.Boots = slices.Clone(s.Boots)
		for i := range f.Boots {
			b := &f.Boots[i]
			n := int(math.Ceil(part * float64(min(len(b.At), len(b.Value)))))
			b.At, b.Value = b.At[:n], b.Value[:n]
		}
		if o, _ := f.judge(); o.Probability >= likely && (j.Until == nil || j.Bound >= o.Rate/2 || s.night(j.Until)) {
			j.Verdict, j.Bound, j.Until, j.Former = Unknown, 0, nil, 0
			j.Why = "it grew before, and that it ended is not sure; a longer log decides"
			return
		}
	}
}

// night reports whether a growth may have ended for a part of a day only: in one boot of a few days, less than half a day before its end.
func (s Series) night(until *Moment) bool {
	if s.Per != "hour" || len(s.Boots) != 1 || len(s.Boots[0].At) == 0 {
		return false
	}
	at := s.Boots[0].At
	span := at[len(at)-1] - at[0]
	return span >= leastDaily && span <= mostDaily && at[len(at)-1]-until.At < 12
}

// judge is Judge without an answer. It returns the reduced boots, too.
func (s Series) judge() (j Judgement, boots []*boot) {
	if s.Quantum <= 0 {
		s.Quantum = 8
	}
	full, fullBoots := s.leaveOutFull()
	j, boots = judge(&s)
	for every := 2; j.Probability < Sure && (s.Kind == Heap || j.Rate > 0 && j.Probability > uncertain); every *= 2 {
		t := thin(&s, every)
		if t == nil {
			break
		}
		least := likely
		if every > maxThin {
			least = Sure
		}
		switch o, _ := judge(t); {
		case j.Probability < hardly && o.Probability < Sure:
			j.evidence.uneven = j.evidence.uneven || o.Probability >= mostIdle && least < Sure
		case o.Probability > math.Max(least, j.Probability):
			if j.Rate > o.Low && j.Rate < o.High { // more points know it better
				j.Probability, j.Weight, j.evidence = o.Probability, o.Weight, o.evidence
			} else {
				j = o
			}
		}
	}
	j.Per, j.Full, j.FullBoots = s.Per, full, fullBoots
	return j, boots
}

// A memory is full from some point of a boot on, if from there on less than a part of what the boot took is free.
const (
	fullPart  = 1.0 / 64
	minFilled = 3 // points
)

// leaveOutFull leaves out what each boot did while the memory was full, and returns since when it is in the
// last one, nil if it is not, and in how many boots it was at the end.
func (s *Series) leaveOutFull() (full *Moment, boots int) {
	if s.Full <= 0 {
		return nil, 0
	}
	s.Boots = slices.Clone(s.Boots)
	for i := range s.Boots {
		b := &s.Boots[i]
		full = nil
		n := min(len(b.At), len(b.Value))
		if n == 0 {
			continue
		}
		k, low := n, slices.Min(b.Value[:n])
		for k > 0 && b.Value[k-1] >= s.Full-fullPart*(s.Full-low) {
			k--
		}
		if k < n && k > 0 {
			full = &Moment{i, b.At[k]}
			boots++
		}
		if k+minFilled <= n {
			b.At, b.Value = b.At[:k+1], b.Value[:k+1]
		}
	}
	return full, boots
}

// Limits of thinning: the largest step by which what is not sure counts, the least number of intervals, of which fewer are never sure, and
// the probability below which a path, of which there are many, is not examined.
const (
	maxThin     = 8
	minThin     = 7
	minThinPath = 12 // points of one boot
	uncertain   = 0.05
)

// thin returns every n-th point of each boot, from the first on; nil if there are too few.
func thin(s *Series, n int) *Series {
	out := *s
	out.Boots = make([]Boot, len(s.Boots))
	intervals, most := 0, 0
	for i, b := range s.Boots {
		t := &out.Boots[i]
		t.Version = b.Version
		for k := 0; k < min(len(b.At), len(b.Value)); k += n {
			t.At, t.Value = append(t.At, b.At[k]), append(t.Value, b.Value[k])
			if k < len(b.Kept) {
				t.Kept = append(t.Kept, b.Kept[k])
			}
		}
		intervals, most = intervals+max(0, len(t.At)-1), max(most, len(t.At))
	}
	if intervals < minThin || s.Kind == Path && most < minThinPath {
		return nil
	}
	return &out
}

// judge judges the points of a series.
func judge(s *Series) (j Judgement, all []*boot) {
	for i := range s.Boots {
		if b := reduce(&s.Boots[i], i, s.Quantum); b != nil {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		return Judgement{Low: math.Inf(-1), High: math.Inf(1), Why: "too short: no boot has 3 points"}, nil
	}
	j = judgeSets(all, s.Quantum, s)
	present, before := latest(all)
	if !j.excluded(present, before, minEnded, s) && len(all) > 1 {
		j.excluded(all[len(all)-1:], all[:len(all)-1], minQuiet, s)
	}
	j.rate(s.Kind, usualRivals)
	return j, all
}

// rate sets the probability of one of so many series that grow.
func (j *Judgement) rate(k Kind, rivals int) {
	if j.Probability = k.among(rivals, j.Weight); j.evidence.Idle > maxIdle || j.evidence.other != "" {
		j.Probability = math.Min(j.Probability, mostIdle)
	}
}

// minQuiet is the least number of intervals of a last boot that excludes the rate of the boots before.
const minQuiet = 10

// excluded reports whether boots exclude the rate of all. Then the judgement is that of these boots, and the
// growth of those before has ended.
func (j *Judgement) excluded(present, before []*boot, points float64, s *Series) bool {
	if len(before) == 0 || j.Rate <= 0 || j.Weight < endedWeight {
		return false
	}
	now := judgeSets(present, s.Quantum, s)
	if now.evidence.Points < points || now.High >= j.Rate/2 {
		return false
	}
	was := judgeSets(before, s.Quantum, s)
	if *j = now; j.Until == nil && was.Weight >= endedWeight && was.Rate > 0 {
		j.Until, j.Former, j.Since = &Moment{present[0].index, present[0].at[0]}, was.Rate, was.Since
	}
	return true
}

// latest returns the boots of the version of the last boot, and the others.
func latest(all []*boot) (present, before []*boot) {
	for _, b := range all {
		if b.version == all[len(all)-1].version {
			present = append(present, b)
		} else {
			before = append(before, b)
		}
	}
	return present, before
}

// maxBoots is the largest number of boots that are judged together: so many know the rate well. The begin may be earlier.
const maxBoots = 512

// judgeSets judges the last boots, as Judge does.
func judgeSets(all []*boot, quantum float64, s *Series) (best Judgement) {
	found := -1
	for n, most := 1, min(len(all), maxBoots); ; n *= 2 {
		n = min(n, most)
		if set := all[len(all)-n:]; enough(set) || n == most {
			j := newSet(set, quantum).judge(s.Kind, s.Per == "hour")
			if j.Boots = n; found < 0 || j.Weight > best.Weight-preferMore {
				best, found = j, len(all)-n
			}
		}
		if n == most {
			break
		}
	}
	if found > 0 && best.Rate > 0 && best.evidence.Share < 1 && best.contrasts(all[:found], all[len(all)-1], quantum) {
		best.evidence.Share, best.evidence.Idle = 1, 0
		best.Weight = weigh(&best.evidence)
	}
	if e := &best.evidence; s.Kind == Heap { // of a heap, the first points are a start-up
		best.Weight = math.Min(best.Weight, perPoint*e.Points)
		if e.Points < shortBoot*e.Boots {
			best.Weight = math.Min(best.Weight, mostShortHeap)
		}
	} else if e.Points < shortBoot*e.Boots { // and so are boots of few dumps
		best.Weight = math.Min(best.Weight, mostShort)
	}
	best.began(all, found, quantum, s.Kind)
	return best
}

// perPoint is the most that an interval adds to the weight of a heap.
const perPoint = 0.6

// maxIdle is the part of the uptime after which a growth that begins late may be a cache that fills, and mostIdle the
// largest probability of such a leak.
const (
	maxIdle  = 0.12
	mostIdle = 0.46
)

// shortBoot is the number of intervals below which a boot may be its start-up, and mostShort and mostShortHeap the largest weight
// of a path and of a heap, which is not sure, in such boots.
const (
	shortBoot     = 4
	mostShort     = 5.3
	mostShortHeap = 3.9
)

// slower is the ratio of the slopes before and after a begin.
const slower = 0.2

// contrasts reports whether an earlier boot ran through at least half of the uptime in which the last boot
// grew, and grew there less than slower times as fast: so the growth is no cache, which each boot fills.
func (j *Judgement) contrasts(before []*boot, last *boot, quantum float64) bool {
	from, to := j.Since.At, last.at[len(last.at)-1]
	for _, b := range before {
		lo := slices.IndexFunc(b.at, func(at float64) bool { return at >= from })
		if lo < 0 {
			continue
		}
		hi := len(b.at) - 1
		for hi > lo && b.at[hi] > to {
			hi--
		}
		if time := b.at[hi] - b.at[lo]; time >= (to-from)/2 && b.floor[hi]-b.floor[lo] < slower*j.Rate*time {
			return true
		}
	}
	return false
}

// enough reports whether a set of boots has enough bins for a slope after a start-up.
func enough(set []*boot) bool {
	for _, b := range set {
		if len(b.at) >= 6 {
			return true
		}
	}
	return false
}

// began looks for the begin of the growth in boots before those that were examined together: from is
// the first of these.
func (j *Judgement) began(all []*boot, from int, quantum float64, k Kind) {
	first := all[from]
	j.Since.Boot = first.index
	if j.Rate <= 0 || j.Weight < 0 || j.Since.At > first.at[0]+0.15*first.span() {
		return
	}
	whole := from
	j.Since.At = first.at[0]
	for i, next := from-1, 0; i >= 0; i = next {
		if next = i - 1 - (from-i)/64; i > 0 { // the farther, the coarser
			next = max(next, 0)
		}
		s := newSet(all[i:i+1], quantum)
		if s.total <= 0 || s.span <= 0 {
			break
		}
		s.segment()
		w := s.window(len(s.cuts) - 2)
		if w.slope < 0.33*j.Rate || w.slope > 3*j.Rate {
			break
		}
		j.Since = Moment{all[i].index, s.time(w.since)}
		if float64(w.since) > 0.15*float64(s.slots) {
			break
		}
		j.Since.At, whole = s.t0, i
	}
	if whole < from {
		whole = max(whole, len(all)-maxBoots)
		more := newSet(all[whole:], quantum).judge(Path, false)
		if more.Rate > j.Rate/2 && more.Rate < j.Rate*2 && more.High-more.Low < j.High-j.Low {
			j.Rate, j.Low, j.High, j.Gain, j.Boots = more.Rate, more.Low, more.High, more.Gain, len(all)-whole
		}
	}
}

// judge judges boots together.
func (s *set) judge(k Kind, timed bool) (j Judgement) {
	if s.cuts = []int{0, s.slots}; s.total <= 0 || s.span <= 0 {
		j = s.flat()
	} else {
		j = s.grown(k, timed)
	}
	if k == Heap && timed && len(s.boots) == 1 {
		j.evidence.daily = s.daily()
	}
	return j
}

// grown judges boots whose floor rises.
func (s *set) grown(k Kind, timed bool) (j Judgement) {
	s.segment()
	last := len(s.cuts) - 2
	if n := s.cuts[last+1] - s.cuts[last]; last > 0 && n <= 2 && s.fit(s.cuts[last], s.cuts[last+1]).slope > 0 { // a jump at the end does not tell the rate
		last--
	}
	w := s.window(last)
	e := s.evidence(w)
	j = Judgement{Rate: w.slope + w.faster/2, Gain: e.gain, evidence: e}
	j.Since = Moment{s.boots[0].index, s.time(w.since)}
	j.Low, j.High = w.slope-e.margin, w.slope+w.faster+e.margin
	j.Weight = weigh(&e)
	if k == Heap && len(s.boots) == 1 && k.Probability(j.Weight) > mostIdle {
		j.evidence.other = s.otherwise(w, timed)
	}
	if e.Points < minPoints {
		j.Weight = math.Min(j.Weight, 0)
	}
	s.ended(last, &j)
	j.evidence.least = s.lossyRate()
	return j
}

// lossyRate returns the rate from the first to the last third of boots that lost blocks, and two deviations, whatever their floor
// does; 0 if they lost none.
func (s *set) lossyRate() float64 {
	if s.lost == 0 {
		return 0
	}
	rise, time := 2*s.lost*math.Sqrt(float64(len(s.boots))), 0.0
	for _, b := range s.boots {
		n := len(b.at)
		part := max(1, n/3)
		rise += mean(b.level[n-part:]) - mean(b.level[:part])
		time += mean(b.at[n-part:]) - mean(b.at[:part])
	}
	return rise / time
}

// flat is the result of boots whose floor does not rise.
func (s *set) flat() Judgement {
	most, points := s.quantum, 0.0
	for _, b := range s.boots {
		most, points = math.Max(most, b.most), points+float64(len(b.at)-1)
	}
	most = (most + 2*s.lost) / math.Max(s.span, 1e-9)
	return Judgement{Weight: -12, Low: -most, High: most, Since: Moment{s.boots[0].index, s.t0}, evidence: evidence{Points: points, Whole: true, least: s.lossyRate()}}
}

// Limits of a growth that ended.
const (
	minEnded    = 5    // the least number of slots
	endedWeight = -1.5 // the least weight
)

// ended finds the last growth before the present, if it was evident and excludes the present rate.
func (s *set) ended(last int, now *Judgement) {
	for i := last - 1; i >= 0; i-- {
		w := s.window(i)
		if w.to-w.since < minEnded || 10*(w.to-w.since) < s.slots || 5*w.to < s.slots || w.slope <= 0 { // it may be the start-up
			continue
		}
		if weigh(new(s.evidence(w))) < endedWeight || now.High > w.slope/2 || now.Low > 0 && now.Rate > w.slope/8 || 10*(s.cuts[last+1]-w.to) < s.slots {
			continue
		}
		boot := s.boots[len(s.boots)-1].index
		now.Until, now.Former, now.Since = &Moment{boot, s.time(w.to - 1)}, w.slope, Moment{boot, s.time(w.since)}
		return
	}
}

// answer sets the verdict by the probability.
func (j *Judgement) answer() {
	e := &j.evidence
	bound := max(j.High, e.least, 0)
	switch {
	case j.Probability >= likely:
		j.Verdict, j.Until, j.Former, j.Why = Leak, nil, 0, ""
	case j.Probability < hardly && !e.uneven && e.daily <= bound && (j.Until != nil || j.Low <= 0 && e.Points >= minNone):
		j.Verdict, j.Bound = None, bound
	case j.Why != "":
	case e.other != "":
		j.Why = e.other
	case j.Probability < hardly && e.daily > bound:
		j.Why = dailyWhy
	case e.Points < 8:
		j.Why = "it grew only at the end; a longer log decides"
		if e.Whole {
			j.Why = fmt.Sprintf("too short: %.0f intervals; about 8 decide", e.Points)
		}
	case j.Probability < hardly && e.Share >= 0.7:
		j.Why = "the growth is uneven; a longer log decides"
	case e.Idle > maxIdle && e.Z > 3:
		j.Why = "it grew only since some time: a leak that began late, or a cache that fills; another boot decides"
	case e.Late < 0.42 && e.Z > 3:
		j.Why = slowingWhy
	case e.Below > 0.5:
		j.Why = "it was as high before; a longer log decides"
	default:
		j.Why = "the growth is hardly more than the noise; a longer log decides"
	}
	if j.Verdict == Unknown {
		j.Until, j.Former = nil, 0
	}
}
