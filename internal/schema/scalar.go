package schema

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// isNull tells whether n is nothing.
func isNull(n *yaml.Node) bool {
	return n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == yaml.NodeTagNull
}

// kindOf is what n is to the API server, in the words of OpenAPI. To many readers of YAML a plain yes is true: who means the word
// puts it in quotes.
func kindOf(n *yaml.Node) string {
	switch n.ShortTag() {
	case yaml.NodeTagMap:
		return "object"
	case yaml.NodeTagSeq:
		return "array"
	case yaml.NodeTagInt:
		return "integer"
	case yaml.NodeTagFloat:
		return "number"
	case yaml.NodeTagBool:
		return "boolean"
	}
	if n.Style == 0 && yaml.IsYaml1_1NonString(n) {
		return "word that is no string to all readers of YAML"
	}
	return "string"
}

// hint says what is often meant.
func hint(s *Schema, n *yaml.Node) string {
	if s.Type == "string" && n.Kind == yaml.ScalarNode {
		return ": put it in quotes"
	}
	return ""
}

// article is the word with the one that belongs before it.
func article(kind string) string {
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// scalar checks a single value.
func (v *visit) scalar(s *Schema, n *yaml.Node, path []string) {
	switch kindOf(n) {
	case "string":
		v.text(s, n.Value, path)
	case "integer", "number":
		v.number(s, n, path)
	}
}

func (v *visit) text(s *Schema, text string, path []string) {
	v.count(utf8.RuneCountInString(text), s.MinLength, s.MaxLength, path, "characters")
	if s.Pattern != nil && !v.matches(*s.Pattern, text) {
		v.find(path, "does not match %s", *s.Pattern)
	}
	switch s.Format {
	case "byte":
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			v.find(path, "is no base64")
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			v.find(path, "is no date and time as in 2006-01-02T15:04:05Z")
		}
	}
}

// perStep is how many instructions of a pattern are one step.
const perStep = 64

// matches tells whether the text matches; one that takes too long to find out ends the visit. Each instruction may be tried at
// each place.
func (v *visit) matches(p pattern, text string) bool {
	if v.check.patterns == nil {
		v.check.patterns = map[pattern]matcher{}
	}
	compiled, known := v.check.patterns[p]
	if !known {
		compiled = p.compile()
		v.check.patterns[p] = compiled
		v.check.Steps -= compiled.size
	}
	if compiled.Regexp == nil {
		return true
	}
	v.check.Steps -= len(text) * compiled.size / perStep
	if v.err = v.ctx.Err(); v.err == nil && v.check.Steps < 0 {
		v.err = ErrTooMuch
	}
	return v.err != nil || compiled.MatchString(text)
}

func (v *visit) number(s *Schema, n *yaml.Node, path []string) {
	value, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if whole, wrong := strconv.ParseInt(n.Value, 0, 64); wrong == nil {
		value, err = float64(whole), nil
	}
	if err != nil {
		return // It is infinite, or written in a way of YAML's own.
	}
	least, most := math.Inf(-1), math.Inf(1)
	if s.Format == "int32" {
		least, most = math.MinInt32, math.MaxInt32
	}
	if s.Minimum != nil {
		least = max(least, *s.Minimum)
	}
	if s.Maximum != nil {
		most = min(most, *s.Maximum)
	}
	switch {
	case value < least || s.ExclusiveMinimum && value == least:
		v.find(path, "is less than is allowed: %s", bound(least, s.ExclusiveMinimum))
	case value > most || s.ExclusiveMaximum && value == most:
		v.find(path, "is more than is allowed: %s", bound(most, s.ExclusiveMaximum))
	}
}

func bound(value float64, exclusive bool) string {
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if exclusive {
		return text + ", and not that either"
	}
	return text
}

// equals tells whether n is the value of an enumeration.
func equals(one any, n *yaml.Node) bool {
	switch one := one.(type) {
	case string:
		return kindOf(n) == "string" && n.Value == one
	case bool:
		return kindOf(n) == "boolean" && strings.EqualFold(n.Value, strconv.FormatBool(one))
	case float64:
		value, err := strconv.ParseFloat(n.Value, 64)
		return err == nil && value == one
	}
	return true // Lists and maps are not looked into.
}

// maxListed bounds how many values of an enumeration are named, and maxWord what of each.
const maxListed, maxWord = 20, 100

// list names the values of an enumeration.
func list(values []any) string {
	words := []string{}
	for _, value := range values[:min(len(values), maxListed)] {
		text, _ := json.Marshal(value) // It was read from JSON.
		words = append(words, fmt.Sprintf("%.*s", maxWord, text))
	}
	if len(values) > maxListed {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}
