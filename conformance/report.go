package conformance

// Status sums up a result.
type Status string

const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Known   Status = "known"   // a failure that the file of known failures expects
	Skipped Status = "skip"    // the implementation does not support the request
	Unasked Status = "unasked" // the run stopped before, or the operation was dropped
)

// Report holds the results of a run.
type Report struct {
	Testee  Hello    `json:"-"`
	Name    string   `json:"testee"`
	Version string   `json:"version,omitempty"`
	Seed    uint64   `json:"seed"`
	Vectors int      `json:"vectors"`
	Cases   int      `json:"cases"` // number of vector, operation and variant; each is asked twice, unless it causes a crash or hang
	Counts  Counts   `json:"counts"`
	Results []Result `json:"results"`
	// Stale lists the faults of the file of known failures: entries that match nothing, or
	// match a vector that passed.
	Stale []string `json:"stale,omitempty"`
	// Dropped lists the operations that hung so often that their other cases were not asked.
	Dropped []Op `json:"dropped,omitempty"`
	// Stopped is the reason why the run was stopped, or "".
	Stopped string `json:"stopped,omitempty"`
}

// Counts holds the numbers of results by status, and of results with warnings.
type Counts struct {
	Pass     int `json:"pass"`
	Fail     int `json:"fail"`
	Known    int `json:"known"`
	Skip     int `json:"skip"`
	Unasked  int `json:"unasked,omitempty"`
	Warnings int `json:"warnings"`
}

// Result is the result of one operation on a vector.
type Result struct {
	ID       string   `json:"id"`
	Op       Op       `json:"op"`
	File     string   `json:"file"`
	Row      int      `json:"line"`
	Clauses  []string `json:"clauses"`
	Status   Status   `json:"status"`
	Outcome  Outcome  `json:"outcome"`            // of the first wrong answer, if the result is a failure
	Cases    int      `json:"cases"`              // variants
	Wrong    int      `json:"wrong,omitempty"`    // variants answered wrongly at least once
	Outcomes []Count  `json:"wrong_by,omitempty"` // wrong answers by outcome
	Failure  *Failure `json:"failure,omitempty"`
	Warning  string   `json:"warning,omitempty"` // a violated SHOULD
	Link     string   `json:"link,omitempty"`    // issue of a known failure

	Vector *Vector `json:"-"`
}

// Count is the number of times that an outcome occurred.
type Count struct {
	Outcome Outcome `json:"outcome"`
	Times   int     `json:"times"`
}

// Failure holds the first wrong answer of a result in full.
type Failure struct {
	Variant  string `json:"variant"`
	Request  string `json:"request"` // in the words of BTP/1
	Want     string `json:"want"`
	Got      string `json:"got"`
	Unstable bool   `json:"unstable,omitempty"` // the testee gave both right and wrong answers
	Again    string `json:"again"`              // the command that repeats it

	Data   []byte `json:"-"` // data of the request or, for encoding, the expected blob
	Answer Answer `json:"-"`
	random bool   // the seed is needed to repeat it
}

// Failed reports whether the run failed.
func (r *Report) Failed() bool { return r.Counts.Fail > 0 || len(r.Stale) > 0 || r.Stopped != "" }

// Ran reports whether any request was answered.
func (r *Report) Ran() bool { return r.Counts.Pass+r.Counts.Fail+r.Counts.Known > 0 }

func (r *Report) count() {
	r.Counts = Counts{}
	for _, res := range r.Results {
		switch res.Status {
		case Pass:
			r.Counts.Pass++
		case Fail:
			r.Counts.Fail++
		case Known:
			r.Counts.Known++
		case Skipped:
			r.Counts.Skip++
		case Unasked:
			r.Counts.Unasked++
		}
		if res.Warning != "" {
			r.Counts.Warnings++
		}
	}
}
