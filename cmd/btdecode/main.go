// Command btdecode turns the compressed backtraces in whole logs into readable
// call stacks.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
