// Package report writes profiles as one self-contained HTML file: a flame graph, a
// table, the dumps over time and their differences.
//
//	profile.Profile ─Write→ page.html (style, script and data inside)
//
// The page loads nothing. Its Content-Security-Policy allows the style and the script
// inside by their hashes and nothing else. Names reach the page as data and are drawn
// as text, never as markup.
package report
