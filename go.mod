module github.com/lwsbt/lwsbt

go 1.26
