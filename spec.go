// Package lwsbt carries the specification, so that tools can quote it.
package lwsbt

import _ "embed"

// Spec is SPEC.md.
//
//go:embed SPEC.md
var Spec string
