package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/stats"
)

// modelsReport is the JSON of a report on models.
type modelsReport struct {
	Version int                 `json:"version"`
	Models  []stats.ModelReport `json:"models"`
}

func (r *reporter) reportModels() error {
	models, err := modelsNamed(r.models)
	if err != nil {
		return err
	}
	out := modelsReport{Version: stats.ReportVersion}
	for _, m := range models {
		rep, err := r.reportModel(m)
		if err != nil {
			return err
		}
		out.Models = append(out.Models, stats.ModelReport{Model: m.Name, About: m.About, Report: rep})
	}
	return r.write(r.stdout, out, stats.ModelSections(out.Models))
}

func modelsNamed(names []string) ([]gen.Model, error) {
	if slices.Contains(names, "all") {
		return gen.Models(), nil
	}
	var models []gen.Model
	for _, name := range names {
		m, ok := gen.ModelByName(name)
		if !ok {
			var known []string
			for _, m := range gen.Models() {
				known = append(known, m.Name)
			}
			return nil, fmt.Errorf("--model %q: expected all, or some of %s", name, strings.Join(known, " "))
		}
		models = append(models, m)
	}
	return models, nil
}

// reportModel encodes synthetic stacks as the model's machine does, and reports on them
// as if they were a log.
func (r *reporter) reportModel(m gen.Model) (*stats.Report, error) {
	machine := m.Machine
	if r.given != nil {
		machine = *r.given
	}
	program := m.Program(r.seed)
	program.Pre, program.Post = r.pre, r.post
	g := r.newGathered()
	g.files = []string{fmt.Sprintf("%d stacks of model %s, seed %d", r.stacks, m.Name, r.seed)}
	var s, recorded codec.Stack
	var blob, line []byte
	for range r.stacks {
		program.Next(&s)
		var err error
		if blob, err = (codec.Encoder{Machine: machine}).AppendBlob(blob[:0], &s, nil); err != nil {
			return nil, fmt.Errorf("--model %s --machine %v: %w", m.Name, machine, err)
		}
		if err = (codec.Decoder{}).Decode(&recorded, nil, blob); err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Name, err)
		}
		line = codec.AppendLine(line[:0], blob)
		g.add(&recorded, blob, blob, line)
	}
	given := r.given
	if r.addr == nil {
		given = &machine
	}
	return r.report(g, given), nil
}
