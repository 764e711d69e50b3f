package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the counters of a server.
type Metrics struct {
	Uploads  *prometheus.CounterVec // by result: accepted, again, refused, limited, full, failed
	Dumps    prometheus.Counter     // written to the store
	Rows     prometheus.Counter     // facts written to the store
	LeftOut  prometheus.Counter     // accepted uploads that could not be read
	Failures prometheus.Counter     // failures to write to the store
}

// NewMetrics returns metrics registered with r. It also registers the size of the spool.
func NewMetrics(r prometheus.Registerer, spool *Spool) *Metrics {
	f := promauto.With(prometheus.WrapRegistererWithPrefix("btfleet_", r))
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "spool_bad_files", Help: "Files in the directory bad of the spool: uploads, and journals, that could not be read."},
		func() float64 { n, _ := spool.Bad(); return float64(n) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "spool_bytes", Help: "Size of the uploads that wait to be written."}, func() float64 { return float64(spool.Size()) })
	return &Metrics{
		Uploads:  f.NewCounterVec(prometheus.CounterOpts{Name: "uploads_total", Help: "Uploads by result."}, []string{"result"}),
		Dumps:    counter("dumps_total", "Heap dumps written to the store."),
		Rows:     counter("facts_total", "Facts written to the store."),
		LeftOut:  counter("left_out_total", "Uploads that were accepted and could not be read."),
		Failures: counter("store_failures_total", "Batches that could not be written and are tried again."),
	}
}
