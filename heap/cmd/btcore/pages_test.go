package main

import (
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func TestPages(t *testing.T) { cmdtest.Pages(t, command()) }
