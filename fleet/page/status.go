package page

import (
	"context"
	"net/http"
	"slices"

	"github.com/lwsbt/lwsbt/fleet/query"
)

// Status summarizes the leaks of a build.
type Status struct {
	Verdict string   `json:"verdict"` // leak, probably, none; few or moving if no device could be examined
	Paths   int      `json:"paths"`   // that leak, or probably do
	Rate    *float64 `json:"rate"`    // of the fastest of them, in bytes per hour; nil if not known
	Grew    int64    `json:"grew"`    // devices on which the fastest grows
	Hours   *float64 `json:"hours"`   // until the first 5 % of the leaking devices have no memory; nil if not known
}

// statusOf returns the status of a build.
func statusOf(l *query.Leaks) *Status {
	switch {
	case l.Moving:
		return &Status{Verdict: "moving"}
	case l.Examined == 0:
		return &Status{Verdict: "few"}
	}
	s := &Status{Verdict: "none"}
	worst := query.Grows
	for _, r := range l.Rows {
		if !r.Verdict.Sure() {
			continue
		}
		s.Paths++
		worst = max(worst, r.Verdict)
		s.Verdict = worst.String()
		if s.Paths == 1 || r.Rate != nil && (s.Rate == nil || *r.Rate > *s.Rate) {
			s.Rate, s.Grew = r.Rate, r.Grew
		}
	}
	if l.Exhaustion != nil {
		s.Hours = l.Exhaustion.Hours05
	}
	return s
}

// Leaks returns the leaks of a build, from the cache if they were computed for a page.
func (p *Pages) Leaks(ctx context.Context, build string) (*query.Leaks, error) {
	v, err := p.db.Version(ctx)
	if err != nil {
		return nil, err
	}
	return p.leaks(ctx, query.Scope{Builds: []string{build}}, "", p.versionOf(v, "", build))
}

func (p *Pages) leaks(ctx context.Context, o query.Scope, since, version string) (*query.Leaks, error) {
	e, err := p.answers.get(ctx, "leaks\x00"+o.Builds[0]+"\x00"+since, version, always, func(ctx context.Context) (any, error) { return p.db.Leaks(ctx, o) })
	if err != nil {
		return nil, err
	}
	return e.data.(*query.Leaks), nil
}

// complete adds to the answer of the page of all builds the statuses that are known within the time to wait. The others
// follow in the background.
func (p *Pages) complete(r *http.Request, data any) (any, error) {
	list, ok := data.(builds)
	if !ok {
		return data, nil
	}
	o, err := scope(r)
	if err != nil {
		return nil, err
	}
	rows, err := p.version(r.Context())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(r.Context(), wait(r))
	defer stop()
	since := window(r)
	list.Builds = slices.Clone(list.Builds)
	for i := range list.Builds { // one after another: once the time is over, none is begun
		one := o
		one.Builds = []string{list.Builds[i].Build.Build}
		version := p.versionOf(rows, since, one.Builds[0])
		e, err := p.states.get(ctx, one.Builds[0]+"\x00"+since, version, always, func(ctx context.Context) (any, error) {
			l, err := p.leaks(ctx, one, since, version)
			if err != nil {
				return nil, err
			}
			return statusOf(l), nil
		})
		if err == nil {
			list.Builds[i].Status = e.data.(*Status)
		}
	}
	return list, nil
}

// Refresh computes what the page of all builds shows, if there are new rows: requests then find it.
func (p *Pages) Refresh(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v1/builds", nil)
	if err != nil {
		return err
	}
	e, err := p.ask(r, "builds.html", p.builds, nil)
	if err != nil {
		return err
	}
	_, err = p.complete(r, e.data)
	return err
}
