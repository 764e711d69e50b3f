package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Options are the options of [Run].
type Options struct {
	Seed          uint64
	Workers       int  // number of processes of the implementation; 0 means 1
	Written       bool // ask vectors only as written, without other spill bits
	StrictReasons bool // a wrong reason is a failure
	Known         *KnownFile
	Partial       bool // the set is a selection: entries of Known without a vector in it are not stale
	Again         Repeat

	// Failed, if not nil, is called with each failure that Known does not expect, as soon
	// as it occurs. Later answers may change the result. Calls do not overlap.
	Failed func(*Result)
	// Progress, if not nil, is called after each batch of answers. Calls do not
	// overlap.
	Progress func(asked, total, failed int)
}

// Batch is the number of requests that are written before the answers are read.
const Batch = 64

// Limits of a run. It stops when the implementation under test has crashed or violated the
// protocol too often, in a row or in total, because each time costs a start. A hang also costs
// the timeout: an operation that hangs hangLimit times is not asked again.
const (
	troubleInARow = 10
	troubleLimit  = 100
	hangLimit     = 3
)

// Run asks the implementation under test every case twice: first all vectors as they are
// written, simple ones first, then in shuffled order once more and with other spill bits.
// A vector on which it crashes, hangs or breaks the protocol is not asked again.
//
// Run returns an error if the implementation could not be asked, or if ctx is done. A wrong
// answer is not an error.
func Run(ctx context.Context, set *Set, start Starter, o Options) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first, err := start(ctx)
	if err != nil {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	r := newRun(set, first.Hello(), o)
	workers := []*worker{{testee: first}}
	for len(workers) < o.Workers && len(workers)*Batch < r.total {
		t, err := start(ctx)
		if err != nil {
			return nil, errors.Join(err, closeAll(workers))
		}
		workers = append(workers, &worker{testee: t})
	}
	for _, order := range r.passes() {
		r.order, r.next = order, 0
		var all sync.WaitGroup
		for _, w := range workers {
			all.Go(func() { w.err = r.work(ctx, w) })
		}
		all.Wait()
		for _, w := range workers {
			err = errors.Join(err, w.err)
		}
		if err != nil {
			return nil, errors.Join(context.Cause(ctx), err, closeAll(workers))
		}
	}
	if err := closeAll(workers); err != nil {
		return nil, err
	}
	return r.report(first.Hello()), nil
}

// worker asks one process of the implementation.
type worker struct {
	testee  Testee
	trouble int // crashes and breaches of the protocol in a row
	err     error
}

func closeAll(workers []*worker) error {
	errs := make([]error, len(workers))
	var all sync.WaitGroup
	for i, w := range workers { // one that does not end at once is waited for
		all.Go(func() { errs[i] = w.testee.Close() })
	}
	all.Wait()
	return errors.Join(errs...)
}

type run struct {
	Options
	vectors int
	checks  []check
	cases   []oneCase
	total   int // questions

	mu      sync.Mutex
	tallies []tally // of checks
	order   []int32 // indexes of cases to ask in this pass
	next    int
	asked   int
	failed  int
	hangs   map[Op]int
	trouble int    // crashes and breaches of the protocol
	stopped string // reason why no more is asked, or ""
}

// oneCase is a check with one setting of spill bits.
type oneCase struct {
	check   int32
	how     variant
	right   uint8 // right answers so far
	wrong   uint8
	skipped uint8
}

// tally gathers the answers to a check.
type tally struct {
	wrong   map[Outcome]int
	warning string
	failure *Failure
	at      int  // case of failure
	trouble bool // the testee crashed, hung or violated the protocol
	right   Answer
}

func newRun(set *Set, hello Hello, o Options) *run {
	r := &run{Options: o, vectors: len(set.Vectors), hangs: map[Op]int{}}
	for _, v := range simpleFirst(set.Vectors) {
		for _, op := range v.Ops {
			c := newCheck(v, op, hello)
			i := int32(len(r.checks))
			r.checks = append(r.checks, c)
			if !hello.Offers(c.asked) {
				continue
			}
			variants := c.variants()
			if o.Written || op.encodes() {
				variants = variants[:1]
			}
			for _, how := range variants {
				r.cases = append(r.cases, oneCase{check: i, how: how})
			}
		}
	}
	r.tallies = make([]tally, len(r.checks))
	r.total = 2 * len(r.cases)
	return r
}

// work asks until nothing is left to ask.
func (r *run) work(ctx context.Context, w *worker) error {
	for {
		r.mu.Lock()
		which := r.order[r.next:min(r.next+Batch, len(r.order))]
		r.next += len(which)
		r.mu.Unlock()
		if len(which) == 0 {
			return nil
		}
		for len(which) > 0 {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			var requests []Request
			if which, requests = r.worthAsking(which); len(which) == 0 {
				break
			}
			answers, err := w.testee.Ask(requests)
			if cause := context.Cause(ctx); cause != nil {
				return cause // the error of a killed process is meaningless
			}
			if err == nil && len(answers) == 0 {
				err = errors.New("testee: no answer and no error")
			}
			if err != nil {
				r.mu.Lock()
				r.next = len(r.order) // all workers can stop
				r.mu.Unlock()
				return err
			}
			r.take(w, which[:len(answers)], requests, answers)
			which = which[len(answers):]
		}
	}
}

// worthAsking returns the cases that are worth asking, and their requests. It leaves out the
// cases of checks that crashed, hung or violated the protocol, the cases of operations that
// hung too often, and all cases once the run is stopped.
func (r *run) worthAsking(which []int32) ([]int32, []Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kept []int32
	var requests []Request
	for _, i := range which {
		c := &r.cases[i]
		if r.stopped == "" && !r.tallies[c.check].trouble && r.hangs[r.checks[c.check].Op] < hangLimit {
			kept = append(kept, i)
			requests = append(requests, r.checks[c.check].request(c.how, r.Seed))
		} else {
			r.asked++
		}
	}
	return kept, requests
}

// take judges and counts answers.
func (r *run) take(w *worker, which []int32, requests []Request, answers []Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, i := range which {
		r.asked++
		r.judge(w, i, requests[n], answers[n])
	}
	if r.Progress != nil {
		r.Progress(r.asked, r.total, r.failed)
	}
}

func (r *run) judge(w *worker, i int32, q Request, a Answer) {
	c := &r.cases[i]
	chk, t := &r.checks[c.check], &r.tallies[c.check]
	if !a.Trouble() {
		w.trouble = 0
	}
	if a.Outcome == Skip {
		c.skipped++
		return
	}
	right, warning, byReason := chk.judge(a)
	if warning != "" {
		t.warning = warning
		right = !r.StrictReasons || !byReason
	}
	if right {
		c.right++
		t.right = a
		return
	}
	c.wrong++
	if t.wrong == nil {
		t.wrong = map[Outcome]int{}
	}
	t.wrong[a.Outcome]++
	first := t.failure == nil
	if first || int(i) < t.at {
		t.at = int(i)
		t.failure = &Failure{Variant: c.how.String(), Request: q.Describe(), Want: chk.want(),
			Got: chk.got(a), Data: q.Data, Answer: a, random: c.how.kind == random}
	}
	expected := r.Known.expects(chk.v.ID, chk.Op, a.Outcome)
	if first && !expected {
		r.failed++
		if r.Failed != nil {
			res := r.result(int(c.check))
			res.Status, res.Outcome = Fail, a.Outcome
			r.Failed(&res)
		}
	}
	if a.Trouble() {
		t.trouble = true
		r.countTrouble(w, chk.Op, a, expected)
	}
}

// countTrouble counts crashes, hangs and violations of the protocol, and stops the run when
// there are too many.
func (r *run) countTrouble(w *worker, op Op, a Answer, expected bool) {
	if expected {
		return
	}
	if a.Outcome == Hang {
		r.hangs[op]++
		return
	}
	w.trouble++
	r.trouble++
	switch {
	case r.stopped != "":
	case w.trouble == troubleInARow:
		r.stopped = fmt.Sprintf("%d answers in a row were a crash or not BTP/1, the last one: %s",
			troubleInARow, a.Describe(opDecode))
	case r.trouble == troubleLimit:
		r.stopped = fmt.Sprintf("the implementation crashed or broke the protocol %d times", troubleLimit)
	}
}

// dropped returns the operations that hung so often that not all their cases were asked.
func (r *run) dropped() (ops []Op) {
	for _, op := range Ops() {
		if r.hangs[op] >= hangLimit {
			ops = append(ops, op)
		}
	}
	return ops
}

// result returns the result of a check so far, without its status.
func (r *run) result(i int) Result {
	c, t := &r.checks[i], &r.tallies[i]
	v := c.v
	res := Result{ID: v.ID, Op: c.Op, File: v.File, Row: v.Row, Clauses: v.Clauses, Status: Skipped,
		Outcome: Skip, Warning: t.warning, Failure: t.failure, Vector: v}
	for outcome, times := range t.wrong {
		res.Outcomes = append(res.Outcomes, Count{outcome, times})
	}
	slices.SortFunc(res.Outcomes, func(a, b Count) int {
		if a.Times != b.Times {
			return b.Times - a.Times
		}
		if a.Outcome < b.Outcome {
			return -1
		}
		return 1
	})
	if t.failure != nil {
		t.failure.Again = r.Again.Command(&res, r.Seed)
	}
	return res
}

func (r *run) report(hello Hello) *Report {
	report := &Report{Testee: hello, Name: hello.Name, Version: hello.Version, Seed: r.Seed,
		Vectors: r.vectors, Cases: len(r.cases), Results: r.results(), Dropped: r.dropped(), Stopped: r.stopped}
	if r.Known != nil {
		report.Stale = r.Known.apply(report.Results, r.Partial || r.stopped != "" || len(report.Dropped) > 0)
	}
	report.count()
	return report
}

// results returns a Result for every check.
func (r *run) results() []Result {
	results := make([]Result, len(r.checks))
	offered := make([]bool, len(r.checks))
	for i := range r.checks {
		results[i] = r.result(i)
	}
	for i, c := range r.cases {
		res, t := &results[c.check], &r.tallies[c.check]
		offered[c.check] = true
		if c.right+c.wrong+c.skipped == 0 {
			continue // not asked, because of an earlier crash or hang, or because the run was stopped
		}
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
	for i := range results {
		if offered[i] && results[i].Cases == 0 {
			results[i].Status, results[i].Outcome = Unasked, ""
		}
	}
	return results
}
