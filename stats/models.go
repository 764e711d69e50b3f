package stats

// ModelReport is a report on synthetic stacks of one address-space model.
type ModelReport struct {
	Model  string  `json:"model"`
	About  string  `json:"about"`
	Report *Report `json:"report"`
}

// ModelSections returns a table of ratios with a row for each model, followed by the
// report on each.
func ModelSections(all []ModelReport) []Section {
	t := Table{ID: "models", Head: []string{"model", "machine", "frames", "raw", "lws", "of raw", "best", "of raw"}}
	for _, m := range all {
		var raw, lws, best Form
		word := m.Report.word
		for _, f := range m.Report.Compression.Forms {
			switch {
			case f.Name == FormRaw32 && word == 32, f.Name == FormRaw64 && word == 64:
				raw = f
			case f.Name == FormRecorded, f.Name == FormLws:
				lws = f
			case f.Name == FormBest:
				best = f
			}
		}
		t.Rows = append(t.Rows, []any{m.Model, m.Report.Dump.Machine, decimal(m.Report.Dump.MeanDepth),
			decimal(raw.Each.Mean), decimal(lws.Each.Mean), percent(ratio(lws.Bytes, raw.Bytes)),
			decimal(best.Each.Mean), percent(ratio(best.Bytes, raw.Bytes))})
	}
	sections := []Section{{ID: "models", Title: "Compression by address space", Tables: []Table{t}, Notes: []string{
		"Mean bytes per allocation; raw is the addresses and the size, in the machine's words. " +
			"The stacks are synthetic: those of a real program may differ."}}}
	for _, m := range all {
		for _, s := range m.Report.Sections() {
			s.ID, s.Title = m.Model+"/"+s.ID, m.Model+": "+s.Title
			sections = append(sections, s)
		}
	}
	return sections
}
