module github.com/lwsbt/lwsbt

go 1.26

require (
	github.com/google/gofuzz v1.2.0
	github.com/ianlancetaylor/demangle v0.0.0-20260724033716-83e58baca724
	github.com/klauspost/compress v1.20.3
	pgregory.net/rapid v1.3.0
)
