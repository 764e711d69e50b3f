package main

import "flag"

var update = flag.Bool("update", false, "write heap/docs/btcore.md anew")
