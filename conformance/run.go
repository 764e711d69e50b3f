package conformance

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Options are how to run.
type Options struct {
	Seed          uint64
	Workers       int  // instances of the testee at a time; 0 is 1
	Written       bool // put vectors as they are written only
	StrictReasons bool // a wrong reason is a failure
	Known         *KnownFile
	Partial       bool // the set is a selection; see KnownFile
	Again         Repeat
}

// Batch is how many requests are written ahead of their answers.
const Batch = 64

// hangLimit is how often a testee may hang on one vector before it is asked no
// more of it: each costs a timeout.
const hangLimit = 3

// Run puts every vector to the testee, each case twice, in shuffled order.
// An error says that the testee or the runner failed, not that an answer was
// wrong.
func Run(set *Set, start Starter, o Options) (*Report, error) {
	first, err := start()
	if err != nil {
		return nil, err
	}
	hello := first.Hello()
	r := newRun(set, hello, o)

	testees := []Testee{first}
	for len(testees) < o.Workers && len(testees)*Batch < len(r.order) {
		t, err := start()
		if err != nil {
			return nil, errors.Join(err, closeAll(testees))
		}
		testees = append(testees, t)
	}
	var workers sync.WaitGroup
	errs := make([]error, len(testees))
	for i, t := range testees {
		workers.Go(func() { errs[i] = r.work(t) })
	}
	workers.Wait()
	if err := errors.Join(append(errs, closeAll(testees))...); err != nil {
		return nil, err
	}
	report := &Report{Testee: hello, Name: hello.Name, Version: hello.Version, Seed: o.Seed,
		Vectors: len(set.Vectors), Cases: len(r.cases), Results: r.results()}
	if o.Known != nil {
		report.Stale = o.Known.apply(report.Results, o.Partial)
	}
	report.count()
	return report, nil
}

func closeAll(testees []Testee) error {
	var errs []error
	for _, t := range testees {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

type run struct {
	Options
	checks []check
	cases  []oneCase
	order  []int32 // indexes of cases, each twice
	next   atomic.Int64

	mu      sync.Mutex
	tallies []tally // of checks
}

// oneCase is a check with one setting of spill bits.
type oneCase struct {
	check   int32
	how     variant
	right   uint8 // answers so far
	wrong   uint8
	skipped uint8
}

// tally gathers the answers to a check.
type tally struct {
	wrong   map[Outcome]int
	warning string
	failure *Failure
	at      int // case of failure
	hangs   int
	right   Answer // a right one
}

func newRun(set *Set, hello Hello, o Options) *run {
	r := &run{Options: o}
	for _, v := range set.Vectors {
		for _, op := range v.Ops {
			c := newCheck(v, op, hello)
			i := int32(len(r.checks))
			r.checks = append(r.checks, c)
			if !hello.Offers(c.request(variant{}, 0)) {
				continue
			}
			variants := c.variants()
			if o.Written || op == OpEncode {
				variants = variants[:1]
			}
			for _, how := range variants {
				r.cases = append(r.cases, oneCase{check: i, how: how})
			}
		}
	}
	r.tallies = make([]tally, len(r.checks))
	for range 2 {
		for i := range r.cases {
			r.order = append(r.order, int32(i))
		}
	}
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	rng.Shuffle(len(r.order), func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	return r
}

// work asks t until nothing is left to ask.
func (r *run) work(t Testee) error {
	var which []int32
	var requests []Request
	for {
		from := int(r.next.Add(Batch)) - Batch
		if from >= len(r.order) {
			return nil
		}
		which, requests = which[:0], requests[:0]
		r.mu.Lock()
		for _, i := range r.order[from:min(from+Batch, len(r.order))] {
			if c := r.cases[i]; r.tallies[c.check].hangs < hangLimit {
				which = append(which, i)
				requests = append(requests, r.checks[c.check].request(c.how, r.Seed))
			}
		}
		r.mu.Unlock()
		answers, err := t.Ask(requests)
		if err != nil {
			r.next.Store(int64(len(r.order))) // nobody need go on
			return err
		}
		r.take(which, requests, answers)
	}
}

// take judges answers and tallies them.
func (r *run) take(which []int32, requests []Request, answers []Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, i := range which {
		c, a := &r.cases[i], answers[n]
		chk, t := &r.checks[c.check], &r.tallies[c.check]
		if a.Outcome == Skip {
			c.skipped++
			continue
		}
		right, warning := chk.judge(a)
		if warning != "" {
			t.warning = warning
			right = !r.StrictReasons
		}
		if right {
			c.right++
			t.right = a
			continue
		}
		c.wrong++
		if a.Outcome == Hang {
			t.hangs++
		}
		if t.wrong == nil {
			t.wrong = map[Outcome]int{}
		}
		t.wrong[a.Outcome]++
		if t.failure == nil || int(i) < t.at {
			t.at = int(i)
			t.failure = &Failure{Variant: c.how.String(), Request: requests[n].Describe(), Want: chk.want(),
				Got: a.Describe(chk.op), Data: requests[n].Data, Answer: a, random: c.how.kind == random}
		}
	}
}

// results makes a Result of every check.
func (r *run) results() []Result {
	results := make([]Result, len(r.checks))
	for i, c := range r.checks {
		t := &r.tallies[i]
		v := c.v
		results[i] = Result{ID: v.ID, Op: c.op, File: v.File, Row: v.Row, Clauses: v.Clauses, Status: Skipped,
			Outcome: Skip, Warning: t.warning, Failure: t.failure, Vector: v}
		for outcome, times := range t.wrong {
			results[i].Outcomes = append(results[i].Outcomes, Count{outcome, times})
		}
		slices.SortFunc(results[i].Outcomes, func(a, b Count) int {
			if a.Times != b.Times {
				return b.Times - a.Times
			}
			if a.Outcome < b.Outcome {
				return -1
			}
			return 1
		})
	}
	for i := range results {
		if f := results[i].Failure; f != nil {
			f.Again = r.Again.Command(&results[i], r.Seed)
		}
	}
	for i, c := range r.cases {
		res, t := &results[c.check], &r.tallies[c.check]
		res.Cases++
		switch {
		case c.wrong > 0:
			res.Status, res.Outcome = Fail, t.failure.Answer.Outcome
			res.Wrong++
			if t.at == i {
				t.failure.Unstable = c.right > 0
			}
		case c.right > 0 && res.Status == Skipped:
			res.Status, res.Outcome = Pass, t.right.Outcome
		}
	}
	return results
}
