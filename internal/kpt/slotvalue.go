package kpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Type is one of JSON's.
type Type string

// The types that a slot may be of.
const (
	// Anything is that of a slot that holds nothing.
	Anything Type = ""
	String   Type = "string"
	Integer  Type = "integer"
	// Number is one that need not be whole.
	Number  Type = "number"
	Boolean Type = "boolean"
	Map     Type = "map"
	List    Type = "list"
)

// TypeOf is the type of a value, as Plain has them.
func TypeOf(value any) Type {
	switch value := value.(type) {
	case string:
		return String
	case bool:
		return Boolean
	case json.Number:
		if strings.ContainsAny(value.String(), ".eE") {
			return Number
		}
		return Integer
	case map[string]any:
		return Map
	case []any:
		return List
	}
	return Anything
}

// numberText is a number as JSON has it, and wholeText a whole one.
var (
	numberText = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,63})(\.[0-9]{1,64})?([eE][-+]?[0-9]{1,3})?$`)
	wholeText  = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,63})$`)
)

// Fits tells whether the value may stand where one of the type is wanted. A whole number is a number, and nothing fits nowhere.
func Fits(value any, wanted Type) bool {
	have := TypeOf(value)
	return have != Anything && (wanted == Anything || have == wanted || have == Integer && wanted == Number)
}

// Convert makes a value of the type of one that is a text that says such a one, or of a single value the text for it.
func Convert(value any, wanted Type) (any, bool) {
	if Fits(value, wanted) {
		return value, true
	}
	switch value := value.(type) {
	case string:
		switch {
		case wanted == Integer && wholeText.MatchString(value), wanted == Number && numberText.MatchString(value):
			return json.Number(value), true
		case wanted == Boolean && (value == "true" || value == "false"):
			return value == "true", true
		}
	case json.Number, bool:
		if wanted == String {
			return fmt.Sprint(value), true
		}
	}
	return nil, false
}

// Plain is the value with the types alone that JSON has, with its numbers to the last digit, and how long it is as a text.
func Plain(value any) (plain any, length int, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, 0, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&plain)
	return plain, len(text), err
}

// errAliases is an object whose aliases stand for too much.
var errAliases = errors.New("its aliases stand for more than can be read")

// Value is what the object says, with the types that JSON has. Texts are as they stand there, those that look like a time as well.
func (r *Resource) Value() (any, error) {
	left := maxNodes
	plain := withoutAliases(r.Node.YNode(), &left)
	if left < 0 {
		return nil, r.problem(r.Node.YNode(), errAliases.Error())
	}
	value, err := valueOf(plain)
	if err != nil {
		return nil, r.problem(r.Node.YNode(), err.Error())
	}
	return value, nil
}

func valueOf(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.MappingNode:
		made := make(map[string]any, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			value, err := valueOf(node.Content[i+1])
			if err != nil {
				return nil, err
			}
			made[node.Content[i].Value] = value
		}
		return made, nil
	case yaml.SequenceNode:
		made := make([]any, len(node.Content))
		for i, element := range node.Content {
			var err error
			if made[i], err = valueOf(element); err != nil {
				return nil, err
			}
		}
		return made, nil
	default:
	}
	switch node.ShortTag() {
	case yaml.NodeTagNull:
		return nil, nil
	case yaml.NodeTagBool, yaml.NodeTagInt, yaml.NodeTagFloat:
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, err
		}
		plain, _, err := Plain(value)
		return plain, err
	}
	return node.Value, nil
}
