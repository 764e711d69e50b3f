// Package vectors carries the vectors by hand, for tests of other modules: it
// imports nothing but the standard library.
//
// Files are *.btv; ../btv/README.md describes their form. The IDs of vectors are permanent; what a
// vector demands changes only if it contradicted SPEC.md. The examples of SPEC.md are vectors,
// too, and not among these files.
package vectors

import "embed"

// FS has the .btv files, in its root.
//
//go:embed *.btv
var FS embed.FS
