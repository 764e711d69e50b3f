module github.com/lwsbt/lwsbt

go 1.26

require (
	github.com/google/gofuzz v1.2.0
	pgregory.net/rapid v1.3.0
)
