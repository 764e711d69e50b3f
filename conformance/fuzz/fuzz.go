package fuzz

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/conformance"
)

// Options are the options of [Run]. It ends after For or Requests, whichever comes first; 0 is no limit.
type Options struct {
	Seed     uint64
	For      time.Duration
	Requests int
	Ops      []conformance.Op // empty: all that the testee offers
	First    bool             // end at the first finding
	Found    func(x *Finding) // is called with each finding
}

// Finding is a request that the testee answers wrongly, made small.
type Finding struct {
	Request   conformance.Request
	Want, Got conformance.Answer
	Field     string // what differs, as [conformance.Request.Compare] names it
	Clause    string // that decides
	Certain   bool   // the codec rejects by it

	steps int // requests to shrink it
	found time.Time
}

// Form returns the form of the request, a short text.
func (x *Finding) Form() string { return form(&x.Request) }

// Report sums up a run.
type Report struct {
	Testee         conformance.Hello
	Asked, Skipped int
	Findings       int
	Hung           []conformance.Op // not asked again
	Took           time.Duration
}

// perClass is how many findings of an operation and field are reported, triedPerClass how many are shrunk.
const perClass, triedPerClass = 3, 24

type fuzzer struct {
	Options
	testee conformance.Testee
	gen    *Generator
	tried  map[string]int  // findings by operation and field
	shapes map[string]bool // of what was reported
	begun  time.Time
	report Report
}

type question struct {
	r    conformance.Request
	want conformance.Answer
}

// Run asks the testee requests that it makes up, and compares its answers with those of the codec.
func Run(ctx context.Context, start conformance.Starter, o Options) (*Report, error) {
	t, err := start(ctx)
	if err != nil {
		return nil, err
	}
	f := &fuzzer{Options: o, testee: t, tried: map[string]int{}, shapes: map[string]bool{}, begun: time.Now()}
	f.report.Testee = t.Hello()
	if f.gen, err = NewGenerator(rand.NewPCG(o.Seed, 7), t.Hello(), o.Ops...); err == nil {
		err = f.run(ctx)
	}
	f.report.Took = time.Since(f.begun)
	return &f.report, errors.Join(err, t.Close())
}

// run asks batches until the run is over. While the testee answers one, it makes up the next.
func (f *fuzzer) run(ctx context.Context) error {
	batch := f.batch()
	f.begun = time.Now()
	for len(batch) > 0 && ctx.Err() == nil && (f.report.Asked == 0 || !f.over()) {
		type result struct {
			answers []conformance.Answer
			err     error
		}
		done := make(chan result, 1)
		go func() {
			answers, err := f.ask(batch)
			done <- result{answers, err}
		}()
		next := f.batch()
		got := <-done
		if got.err != nil {
			return got.err
		}
		for i, a := range got.answers {
			f.report.Asked++
			if a.Outcome == conformance.Skip {
				f.report.Skipped++
			}
			if field := batch[i].r.Compare(batch[i].want, batch[i].want); field != "" { // the codec fails itself
				testee := f.testee
				f.testee = reference
				f.take(&batch[i], batch[i].want, field)
				f.testee = testee
				continue
			}
			if field := batch[i].r.Compare(batch[i].want, a); field != "" && f.take(&batch[i], a, field) && f.First {
				return nil
			}
			if f.over() {
				return nil
			}
		}
		batch = slices.DeleteFunc(next, func(q question) bool { return slices.Contains(f.report.Hung, q.r.Op) })
		if len(batch) == 0 {
			batch = f.batch()
		}
	}
	return context.Cause(ctx)
}

func (f *fuzzer) over() bool {
	return f.For > 0 && time.Since(f.begun) > f.For || f.Requests > 0 && f.report.Asked >= f.Requests
}

// ask asks a batch. A request without an answer in time is asked again, since a busy machine is slow; if that
// hangs, too, its operation is not asked any more.
func (f *fuzzer) ask(batch []question) ([]conformance.Answer, error) {
	answers := make([]conformance.Answer, 0, len(batch))
	for len(answers) < len(batch) && (len(answers) == 0 || !f.over()) { // one that crashes each time is slow
		var list []conformance.Request
		for _, q := range batch[len(answers):] {
			if slices.Contains(f.report.Hung, q.r.Op) {
				break
			}
			list = append(list, q.r)
		}
		if len(list) == 0 {
			answers = append(answers, conformance.Answer{Outcome: conformance.Skip})
			continue
		}
		more, err := f.testee.Ask(list)
		if err != nil || len(more) == 0 {
			return nil, cmp.Or(err, errors.New("no answer and no error"))
		}
		if last := len(more) - 1; more[last].Outcome == conformance.Hang {
			if again, err := f.testee.Ask(list[last : last+1]); err == nil && len(again) == 1 {
				if more[last] = again[0]; again[0].Outcome == conformance.Hang {
					f.report.Hung = append(f.report.Hung, list[last].Op)
				}
			}
		}
		answers = append(answers, more...)
	}
	return answers, nil
}

// batch makes up requests.
func (f *fuzzer) batch() (batch []question) {
	for len(batch) < conformance.Batch {
		r, ok := f.gen.Next()
		if !ok {
			break
		}
		batch = append(batch, question{r, right(&r)})
	}
	return batch
}

// take shrinks and reports a difference, unless there were enough like it.
func (f *fuzzer) take(q *question, got conformance.Answer, field string) bool {
	class := string(q.r.Op) + " " + field
	if f.tried[class]++; f.tried[class] > triedPerClass || got.Trouble() && f.tried[class] > perClass {
		return false
	}
	x := &Finding{Request: q.r, Want: q.want, Got: got, Field: field, found: time.Now()}
	if got.Outcome != conformance.Hang {
		f.shrink(x)
		f.descend(x)
	} else {
		f.gen.drop(q.r.Op)
	}
	class = string(x.Request.Op) + " " + x.Field
	shape := class + " " + digitRuns.ReplaceAllString(x.Form(), "0")
	if f.shapes[shape] || f.tried["reported "+class] >= perClass {
		return false
	}
	f.shapes[shape] = true
	f.tried["reported "+class]++
	x.name()
	if f.report.Findings++; f.Found != nil {
		f.Found(x)
	}
	return true
}

// descend looks for a line of a log that the testee reads wrongly by itself, too: then that is the finding.
func (f *fuzzer) descend(x *Finding) {
	if x.Request.Op != "log" && x.Request.Op != "dumps" {
		return
	}
	ofLine := map[byte]conformance.Op{'h': "hline", 'p': "pline", 'v': "vline",
		'm': "mline", 'b': "bline", 'e': "eline"}
	for it := range recording.Items(bytes.Clone(x.Request.Data)) {
		if !it.Found() {
			continue
		}
		r := conformance.Request{Op: ofLine[it.Text[1]], Word: 64, Data: bytes.Clone(it.Text)}
		if !f.gen.fits(&r) {
			continue
		}
		want, got := right(&r), ask(f.testee, &r)
		if field := r.Compare(want, got); field != "" {
			x.Request, x.Want, x.Got, x.Field = r, want, got, field
			f.shrink(x)
			return
		}
	}
}
