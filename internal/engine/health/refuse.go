package health

import (
	"errors"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/parser"
)

var (
	// errPattern is a regular expression: what one costs shows only when it is over.
	errPattern = errors.New("regular expressions are not allowed; use startsWith, endsWith or contains")
	// errGrows is a value made of others. A few of them within each other have more parts than can ever be looked at.
	errGrows = errors.New("a list of values that are not constant may only be to the right of 'in', and a map have none")
)

// refuse says why the expression may do more work at once than can be counted beforehand, whatever the object.
func refuse(parsed *cel.Ast) error {
	var refused error
	// lists are those that may have values of any kind.
	lists := map[int64]bool{}
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(expression ast.Expr) {
		switch expression.Kind() {
		case ast.CallKind:
			call := expression.AsCall()
			if call.FunctionName() == overloads.Matches {
				refused = errPattern
			}
			if args := call.Args(); len(args) == 2 && takesList(call.FunctionName(), args[0]) {
				lists[args[1].ID()] = true
			}
		case ast.ListKind, ast.MapKind, ast.StructKind:
			if !lists[expression.ID()] && !constant(expression) {
				refused = errGrows
			}
		default:
		}
	}))
	return refused
}

// takesList says that a list on the right is only looked at, or is what a macro adds to its result, which is counted.
func takesList(function string, left ast.Expr) bool {
	return function == operators.In || function == operators.OldIn ||
		function == operators.Add && left.Kind() == ast.IdentKind && left.AsIdent() == parser.HiddenAccumulatorName
}

// constant says that a value does not depend on the object.
func constant(expression ast.Expr) bool {
	switch expression.Kind() {
	case ast.LiteralKind:
		return true
	case ast.ListKind:
		return !slices.ContainsFunc(expression.AsList().Elements(), func(one ast.Expr) bool { return !constant(one) })
	case ast.MapKind:
		return !slices.ContainsFunc(expression.AsMap().Entries(), func(one ast.EntryExpr) bool {
			return !constant(one.AsMapEntry().Key()) || !constant(one.AsMapEntry().Value())
		})
	default:
		return false
	}
}
