package profile

import (
	"bytes"

	pprof "github.com/google/pprof/profile"
)

// Pprof returns the last dump as exported to pprof, read by pprof's own package.
func (p *Profile) Pprof() (*pprof.Profile, []string) {
	var b bytes.Buffer
	notes, err := p.Export(&b, "pprof", ExportOptions{})
	if err != nil {
		panic(err)
	}
	prof, err := pprof.ParseData(b.Bytes())
	if err != nil {
		panic(err)
	}
	return prof, notes
}
