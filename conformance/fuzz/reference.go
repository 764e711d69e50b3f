// Package fuzz compares implementations of SPEC.md on requests that no vector has: half are made up
// by a model of the format, half are mutations of the vectors. It shrinks what differs, and names
// the clause that decides.
package fuzz

import (
	"context"

	"github.com/lwsbt/lwsbt/conformance"
)

var reference, _ = conformance.Codec(context.Background())

// right returns the codec's answer.
func right(r *conformance.Request) conformance.Answer { return ask(reference, r) }

// ask returns the answer to one request; an error is a crash.
func ask(t conformance.Testee, r *conformance.Request) (a conformance.Answer) {
	defer func() {
		if recover() != nil {
			a = conformance.Answer{Outcome: conformance.Crash}
		}
	}()
	list, err := t.Ask([]conformance.Request{*r})
	if err != nil || len(list) != 1 {
		return conformance.Answer{Outcome: conformance.Crash}
	}
	return list[0]
}
