package conformance

// Status sums up a result.
type Status string

const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Known   Status = "known"   // a failure that the file of known ones expects
	Skipped Status = "skip"    // the implementation does not support the request
	Unasked Status = "unasked" // the run was stopped before, or the operation was dropped
)

// Report holds the results of a run.
type Report struct {
	Testee  Hello    `json:"-"`
	Name    string   `json:"testee"`
	Version string   `json:"version,omitempty"`
	Seed    uint64   `json:"seed"`
	Vectors int      `json:"vectors"`
	Cases   int      `json:"cases"` // vectors times operations times variants; each asked twice, unless it shows trouble
	Counts  Counts   `json:"counts"`
	Results []Result `json:"results"`
	// Stale are faults of the file of known failures: entries that fit nothing,
	// or something that passed.
	Stale []string `json:"stale,omitempty"`
	// Dropped are operations that hung so often that their other cases were not asked.
	Dropped []Op `json:"dropped,omitempty"`
	// Stopped is why the run was stopped; "" if it was not.
	Stopped string `json:"stopped,omitempty"`
	// Clusters name the clauses that explain most failures, once FindClusters was
	// called.
	Clusters []Cluster `json:"clusters,omitempty"`
}

// Counts are results by status, and those with warnings.
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
	Outcome  Outcome  `json:"outcome"`            // what the implementation did; of a failure, its first wrong answer
	Cases    int      `json:"cases"`              // variants
	Wrong    int      `json:"wrong,omitempty"`    // variants answered wrongly at least once
	Outcomes []Count  `json:"wrong_by,omitempty"` // wrong answers by outcome
	Failure  *Failure `json:"failure,omitempty"`
	Warning  string   `json:"warning,omitempty"` // SHOULD, not MUST
	Link     string   `json:"link,omitempty"`    // of a known failure

	Vector *Vector `json:"-"`
}

// Count is how often an outcome was seen.
type Count struct {
	Outcome Outcome `json:"outcome"`
	Times   int     `json:"times"`
}

// Failure is a wrong answer in full, the first of a result's.
type Failure struct {
	Variant  string `json:"variant"`
	Request  string `json:"request"` // in BTP/1's words
	Want     string `json:"want"`
	Got      string `json:"got"`
	Unstable bool   `json:"unstable,omitempty"` // asked again, it answered rightly
	Again    string `json:"again"`              // the command that repeats it

	Data   []byte `json:"-"` // of the request, or the blob expected of encoding
	Answer Answer `json:"-"`
	random bool   // whether it takes the seed to repeat it
}

// FindClusters sets Clusters.
func (r *Report) FindClusters() { r.Clusters = clusters(r.Results) }

// Failed reports whether the run shows a failure.
func (r *Report) Failed() bool { return r.Counts.Fail > 0 || len(r.Stale) > 0 || r.Stopped != "" }

// Ran reports whether anything was asked and answered at all.
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
