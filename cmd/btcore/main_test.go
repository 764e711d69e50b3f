package main

import "flag"

var update = flag.Bool("update", false, "write docs/btcore.md anew")
