package yamltext

import (
	"bytes"
	"errors"
)

// ErrEncoding is returned for a text that is not UTF-8 by its byte order mark.
var ErrEncoding = errors.New("the text is UTF-16, and only UTF-8 is read")

// Document is one document of a file, with all that stands around it: its directives, its marker, and the comments before it.
type Document struct {
	// Text is the document's part of the file. The texts of all documents, one after the other, are the file.
	Text []byte
	// Line is the line of the file that the text begins with, counted from 1.
	Line int
}

// Split cuts the file into its documents. The texts share the file's memory. A file without a byte has no document; any other
// has at least one, which may be empty. A document begins with its marker (---) or with what precedes that on its own behalf:
// directives and comments at the file's beginning or after the end (...) of the document before.
func Split(src []byte) ([]Document, error) {
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return nil, ErrEncoding
	}
	s := splitter{src: src, line: 1, startLine: 1}
	for s.at < len(src) {
		s.next()
	}
	s.cut(len(src), s.line)
	return s.documents, nil
}

// splitter goes through a file line by line. Markers count wherever a line begins with one: no scalar of any style may
// hold such a line.
type splitter struct {
	src       []byte
	documents []Document
	// at is where the next line begins, start where the document began that is being read.
	at, start int
	// line is the number of the next line, startLine that of the document's first.
	line, startLine int
	// opened says that the document's marker has been read, filled that some content has, ended that it has been closed.
	opened, filled, ended bool
	// over is where the line after the end (...) begins, and overLine its number.
	over, overLine int
}

// next reads one line.
func (s *splitter) next() {
	end := lineEnd(s.src, s.at)
	text := s.src[s.at:end]
	if s.at == 0 {
		text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	}
	switch {
	case isMarker(text, "---"):
		switch {
		case s.ended:
			s.cut(s.over, s.overLine)
		case s.opened || s.filled:
			s.cut(s.at, s.line)
		}
		s.opened = true
		s.filled = !isBlank(text[3:])
	case isMarker(text, "..."):
		s.ended, s.over, s.overLine = true, end+breakWidth(s.src, end), s.line+1
	case isBlank(text):
	case s.ended:
		// What follows the end is the next document: directives before its marker, or its content at once.
		s.cut(s.over, s.overLine)
		s.filled = text[0] != '%'
	case text[0] == '%' && !s.opened && !s.filled:
		// A directive is no content yet.
	default:
		s.filled = true
	}
	s.at = end + breakWidth(s.src, end)
	s.line++
}

// cut ends the document at the offset, where a line begins.
func (s *splitter) cut(end, line int) {
	if end > s.start {
		s.documents = append(s.documents, Document{Text: s.src[s.start:end:end], Line: s.startLine})
	}
	s.start, s.startLine = end, line
	s.opened, s.filled, s.ended = false, false, false
}

// isMarker says whether the line is a document's marker, with or without content behind it.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

// isBlank says whether there is nothing in the line but blanks and a comment.
func isBlank(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) == 0 || line[0] == '#'
}
