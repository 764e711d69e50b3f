package btv

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// maxPieces is the number of bytes that `hex:` and `text:` may expand to. A blob has up to
// 65,535 bytes, its text up to 87,384, and both fit in a line of BTP/1.
const maxPieces = 200_000

// parseHexPieces reads the value of `hex:`: words as for parseHex, separated by spaces. A word
// may end in *N, which repeats its bytes N times.
func parseHexPieces(text string) ([]byte, error) {
	if !strings.ContainsAny(text, " *") {
		return words.ParseHex(text)
	}
	var data []byte
	for _, word := range strings.Fields(text) {
		digits, times, err := cutTimes(word)
		if err != nil {
			return nil, err
		}
		piece, err := words.ParseHex(digits)
		if err != nil {
			return nil, err
		}
		if data, err = appendTimes(data, piece, times); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// parseText reads the value of `text:`: JSON strings, bytes in hexadecimal, and ~p# lines in
// words, separated by spaces. Each may end in *N, which repeats it N times. A comment may
// follow.
func parseText(text string) (string, error) {
	var data []byte
	rest := text
	for pieces := 0; ; pieces++ {
		rest = strings.TrimLeft(rest, " ")
		if pieces > 0 && (rest == "" || rest[0] == '#') {
			break
		}
		piece, after, err := cutPiece(rest)
		if err != nil {
			return "", err
		}
		word, tail, more := strings.Cut(after, " ")
		mark, times, err := cutTimes(word)
		if err == nil && mark != "" {
			err = fmt.Errorf("text: %q after a piece, expected a space or *N", words.Clip(mark))
		}
		if err != nil {
			return "", err
		}
		if data, err = appendTimes(data, piece, times); err != nil {
			return "", err
		}
		rest = ""
		if more {
			rest = tail
		}
	}
	return string(data), nil
}

// cutPiece reads a JSON string, bytes in hexadecimal or a ~p# line in words from the beginning
// of text, and returns the rest of text.
func cutPiece(text string) (piece []byte, rest string, err error) {
	bad := fmt.Errorf("text %s, expected strings in double quotes, with JSON's escapes, bytes in hex, or ~p#(WORDS)", words.Clip(text))
	if text == "" {
		return nil, "", bad
	}
	if inside, ok := strings.CutPrefix(text, "~p#("); ok {
		inside, rest, ok = strings.Cut(inside, ")")
		if !ok {
			return nil, "", bad
		}
		line, err := words.ParsePathLine(inside)
		if err == nil && line.Flags > callpath.Blocks|callpath.Ever|callpath.Peak {
			err = fmt.Errorf("flags=%d, expected at most 7", line.Flags)
		}
		if err == nil {
			piece, err = callpath.AppendLine(nil, line.Head, line.Entries)
		}
		if err != nil {
			return nil, "", fmt.Errorf("text ~p#(%s): %w", words.Clip(inside), err)
		}
		return piece, rest, nil
	}
	if text[0] != '"' {
		end := strings.IndexAny(text, " *")
		if end < 0 {
			end = len(text)
		}
		if piece, err = words.ParseHex(text[:end]); err != nil || text[0] == '-' {
			return nil, "", bad
		}
		return piece, text[end:], nil
	}
	end := 1
	for end < len(text) && text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	var s string
	if end >= len(text) || json.Unmarshal([]byte(text[:end+1]), &s) != nil {
		return nil, "", bad
	}
	return []byte(s), text[end+1:], nil
}

// cutTimes removes *N from the end of a word and returns N, or 1 if there is no *N.
func cutTimes(word string) (head string, times int, err error) {
	head, n, ok := strings.Cut(word, "*")
	if !ok {
		return head, 1, nil
	}
	times, err = strconv.Atoi(n)
	if err != nil || times < 1 || strconv.Itoa(times) != n {
		return "", 0, fmt.Errorf("*%s, expected * and a number from 1 on", words.Clip(n))
	}
	return head, times, nil
}

// appendTimes appends a piece the given number of times.
func appendTimes(data, piece []byte, times int) ([]byte, error) {
	if len(piece) > 0 && times > (maxPieces-len(data))/len(piece) {
		return nil, errors.New("more than " + strconv.Itoa(maxPieces) + " bytes, expected fewer")
	}
	for range times {
		data = append(data, piece...)
	}
	return data, nil
}

// appendDigits appends words of digits. *N after a word repeats the word.
func appendDigits(data []byte, text string) ([]byte, error) {
	for _, word := range strings.Fields(text) {
		digits, times, err := cutTimes(word)
		if err == nil {
			data, err = appendTimes(data, []byte(digits), times)
		}
		if err != nil {
			return nil, fmt.Errorf("digits: %w", err)
		}
	}
	return data, nil
}
