// Package lwsbt carries the specification, so that tools can quote it.
package lwsbt

import "embed"

// SpecFiles are the files of the specification in [Spec], in the order of its parts.
var SpecFiles = []string{"SPEC.md", "spec/recordings.md", "spec/callpaths.md", "spec/lws.md"}

// Spec has the specification: the files that [SpecFiles] names.
//
//go:embed SPEC.md spec/*.md
var Spec embed.FS
