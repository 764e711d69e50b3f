package forms

import (
	"slices"
	"strings"
)

// class is what a word of a program's own line means for the number that it labels: a set of bits.
type class uint32

const (
	wordFree     class = 1 << iota // what is free
	wordUsed                       // what is allocated
	wordHeap                       // memory that may be a heap
	wordName                       // one of several heaps
	wordMin                        // the least so far
	wordMax                        // the most so far, or the largest block
	wordLargest                    // the largest block
	wordBlock                      // a block, with max
	wordTotal                      // the size, with the name of a memory
	wordFrag                       // fragmentation
	wordTime                       // the time since the boot
	wordUnit                       // the unit of a time
	wordOf                         // between a part and a whole
	wordFill                       // says nothing about the number
	wordBytes                      // the unit of a number of bytes
	wordResident                   // memory of a process: bytes if the number or the line says so
	wordGo                         // a field of Go's MemStats
	wordNot                        // the number is none of a heap
	wordUnknown
)

// vocabulary has the words that ownLine reads. Words may be written together: freeHeap, minfreeheap.
var vocabulary = func() map[string]class {
	words := map[string]class{}
	for _, row := range []struct {
		class class
		words string
	}{
		{wordFree, "free available avail remaining remain left"},
		{wordUsed, "used allocated usage use inuse"},
		{wordResident, "rss vmrss rssanon resident"},
		{wordGo, "heapalloc heapinuse"},
		{wordFill | wordBytes, "kb kib mb mib"},
		{wordHeap, "heap mem memory ram sram memstats"},
		{wordHeap | wordName, "internal inter psram spiram dram iram dma default"},
		{wordMin, "min minimum lowest least"},
		{wordMax, "max maximum"},
		{wordLargest, "largest biggest"},
		{wordBlock, "block alloc allocatable chunk contiguous"},
		{wordTotal, "total size"},
		{wordFrag, "frag fragmentation"},
		{wordTime, "uptime millis ts timestamp"},
		{wordUnit, "ms sec secs seconds s"},
		{wordOf, "of"},
		{wordFill, "byte bytes b esp get x port system is are has now still the in ever space current currently and caps cap malloc bit"},
		{wordUnknown, "heaptotal"}, // of V8: what it has from the system so far
		{wordNot, "stack flash rtc video card sd sdcard disk swap fs file files spiffs littlefs fat fatfs nvs eeprom sketch partition storage queue buffer buffers pool slots" +
			" watermark leak leaked lost delta diff change blocks fragments count"},
	} {
		for _, word := range strings.Fields(row.words) {
			words[word] = row.class
		}
	}
	return words
}()

// wordsOf returns the classes of the words in a name: those between underscores, and those that begin
// with capitals.
func wordsOf(text string) (list []label) {
	for part := range strings.SplitSeq(text, "_") {
		if part == "" {
			continue
		}
		if c, ok := vocabulary[strings.ToLower(part)]; ok {
			list = append(list, label{strings.ToLower(part), c})
			continue
		}
		for _, word := range camelWords(part) {
			list = append(list, together(strings.ToLower(word))...)
		}
	}
	return list
}

// label is a word, in small letters, and its class.
type label struct {
	word string
	class
}

// camelWords splits a name before its capitals: getFreeHeap, ESPFree.
func camelWords(text string) (words []string) {
	isUpper := func(i int) bool { return text[i] >= 'A' && text[i] <= 'Z' }
	from := 0
	for i := 1; i < len(text); i++ {
		if isUpper(i) && (!isUpper(i-1) || i+1 < len(text) && !isUpper(i+1)) {
			words, from = append(words, text[from:i]), i
		}
	}
	return append(words, text[from:])
}

// together splits a word that consists of several, each of at least three letters: minfreeheap. The
// longest words go first.
func together(text string) []label {
	if c, ok := vocabulary[text]; ok {
		return []label{{text, c}}
	}
	if list := split(text, len("allocatable")); list != nil {
		return list
	}
	return []label{{text, wordUnknown}}
}

func split(text string, longest int) []label {
	for n := min(longest, len(text)); n >= 3; n-- {
		c, ok := vocabulary[text[:n]]
		if !ok {
			continue
		}
		first := []label{{text[:n], c}}
		if n == len(text) {
			return first
		}
		if rest := split(text[n:], longest); rest != nil {
			return slices.Concat(first, rest)
		}
	}
	return nil
}
