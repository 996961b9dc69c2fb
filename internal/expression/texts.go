package expression

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxText bounds the texts that the functions of Texts take and make, in bytes.
const maxText = 64 << 10

var errText = errors.New("a text has more than 65536 bytes")

// Texts are functions of texts, by the names and with the meaning that CEL's extension has: split, join, replace, substring,
// indexOf, lastIndexOf, trim, lowerAscii and upperAscii. Unlike those they look at how long a text is, and would be, before they
// make it, so that they may be given whatever there is. Places count characters.
func Texts() cel.EnvOption {
	text, number, list := cel.StringType, cel.IntType, cel.ListType(cel.StringType)
	return func(env *cel.Env) (*cel.Env, error) {
		var err error
		for _, option := range []cel.EnvOption{
			member("split", list, split, text, text),
			member("join", text, join, list, text),
			member("replace", text, replace, text, text, text),
			cel.Function("substring",
				overload("substring_from", text, substring, text, number), overload("substring_range", text, substring, text, number, number)),
			member("indexOf", number, indexOf(strings.Index), text, text),
			member("lastIndexOf", number, indexOf(strings.LastIndex), text, text),
			member("trim", text, plain(strings.TrimSpace), text),
			member("lowerAscii", text, plain(ascii('A', 'Z', 'a'-'A')), text),
			member("upperAscii", text, plain(ascii('a', 'z', 'A'-'a')), text),
		} {
			if env, err = option(env); err != nil {
				return nil, err
			}
		}
		return env, nil
	}
}

// do is a function whose texts are short enough.
type do func(args []ref.Val) ref.Val

func member(name string, result *cel.Type, do do, args ...*cel.Type) cel.EnvOption {
	return cel.Function(name, overload("text_"+name, result, do, args...))
}

func overload(id string, result *cel.Type, do do, args ...*cel.Type) cel.FunctionOpt {
	return cel.MemberOverload(id, args, result, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
		for _, arg := range args {
			if text, ok := arg.(types.String); ok && len(text) > maxText {
				return types.WrapErr(errText)
			}
		}
		return do(args)
	}))
}

// word is the argument, which is a text, as the checker and CEL's dispatcher have seen to.
func word(args []ref.Val, i int) string {
	text, _ := args[i].(types.String)
	return string(text)
}

// bounded is a text, if it is not too long.
func bounded(length int, text func() string) ref.Val {
	if length > maxText {
		return types.WrapErr(errText)
	}
	return types.String(text())
}

func split(args []ref.Val) ref.Val {
	return types.NewStringList(types.DefaultTypeAdapter, strings.Split(word(args, 0), word(args, 1)))
}

func join(args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	separator := word(args, 1)
	var parts []string
	length := 0
	for values := list.Iterator(); values.HasNext() == types.True; {
		part, ok := values.Next().(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		if length += len(part) + len(separator); length > maxText+len(separator) {
			return types.WrapErr(errText)
		}
		parts = append(parts, string(part))
		if len(parts) > maxText {
			return types.WrapErr(errText)
		}
	}
	return types.String(strings.Join(parts, separator))
}

func replace(args []ref.Val) ref.Val {
	text, old, made := word(args, 0), word(args, 1), word(args, 2)
	return bounded(len(text)+strings.Count(text, old)*(len(made)-len(old)), func() string { return strings.ReplaceAll(text, old, made) })
}

func substring(args []ref.Val) ref.Val {
	runes := []rune(word(args, 0))
	from, _ := args[1].(types.Int)
	to := types.Int(len(runes))
	if len(args) == 3 {
		to, _ = args[2].(types.Int)
	}
	if from < 0 || from > to || int64(to) > int64(len(runes)) {
		return types.NewErr("there is no part of the text from %d to %d", from, to)
	}
	return types.String(string(runes[from:to]))
}

func indexOf(find func(text, part string) int) do {
	return func(args []ref.Val) ref.Val {
		text := word(args, 0)
		at := find(text, word(args, 1))
		if at < 0 {
			return types.Int(at)
		}
		return types.Int(utf8.RuneCountInString(text[:at]))
	}
}

func plain(change func(string) string) do {
	return func(args []ref.Val) ref.Val { return types.String(change(word(args, 0))) }
}

func ascii(from, to, by rune) func(string) string {
	return func(text string) string {
		return strings.Map(func(r rune) rune {
			if r >= from && r <= to {
				return r + by
			}
			return r
		}, text)
	}
}
