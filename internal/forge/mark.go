package forge

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

const (
	// Comments of HTML, which none of the three shows. JSON as it is written here has no angle bracket in it.
	markBegins, markEnds = "<!-- sluice: ", " -->"
	textEnds             = "<!-- /sluice -->"
	// maxMark bounds a mark: a path, a workspace and some hashes.
	maxMark = 4 << 10
)

// Mark is what the text of a request says of itself, for programs.
type Mark struct {
	// Owner is who asks for the review: <namespace>/<name>.
	Owner string `json:"owner"`
	// Package and Workspace name the change.
	Package   string `json:"package"`
	Workspace string `json:"workspace"`
	// Commit and Tree are what the text describes: the tip of the change, and the folder of the package in it.
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	// Digest is that of the words.
	Digest string `json:"digest"`
}

// Text is a text with a mark. What is written around it stays when it is replaced.
func Text(mark Mark, words string) (string, error) {
	line, err := json.Marshal(mark)
	if err != nil {
		return "", err
	}
	if len(line) > maxMark {
		return "", fmt.Errorf("a mark of %d bytes is more than %d", len(line), maxMark)
	}
	return markBegins + string(line) + markEnds + "\n" + words + "\n" + textEnds, nil
}

// readMark reads the mark of a text; a zero one where there is none.
func readMark(text string) (mark Mark) {
	_, rest, found := strings.Cut(text, markBegins)
	line, _, ended := strings.Cut(rest[:min(len(rest), maxMark+len(markEnds))], markEnds)
	if !found || !ended || json.Unmarshal([]byte(line), &mark) != nil {
		return Mark{}
	}
	return mark
}

// replace puts a new text in the place of the one that is there, or in front of what is.
func replace(now, text string) string {
	before, rest, found := strings.Cut(now, markBegins)
	if !found {
		if now == "" {
			return text
		}
		return text + "\n\n" + now
	}
	_, after, found := strings.Cut(rest, textEnds)
	if !found {
		after = "" // Somebody has taken the end away: where it was, nobody can tell.
	}
	return before + text + after
}

// Code makes words from outside into code in a text: nobody is mentioned by them, nothing is linked or closed, and no command is
// given to the forge. All but letters, digits and what cannot mean anything is written as a character reference.
func Code(words string) string {
	if words == "" {
		return ""
	}
	var out strings.Builder
	out.WriteString("<code>")
	for _, r := range words {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .,", r) {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "&#%d;", r)
		}
	}
	out.WriteString("</code>")
	return out.String()
}
