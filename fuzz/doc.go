// Package fuzz holds the fuzz targets of all packages, for go test -fuzz, and the
// tests that need a fuzzer's idea of input. docs/fuzzing.md says how to run them
// long, and what that found.
//
// Seeds come from corpus/ and from the vectors; without any, a target fails.
package fuzz
