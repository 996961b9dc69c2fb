package expression

import (
	"errors"

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
	for _, part := range ast.MatchDescendants(ast.NavigateAST(parsed.NativeRep()), ast.AllMatcher()) {
		switch part.Kind() {
		case ast.CallKind:
			if part.AsCall().FunctionName() == overloads.Matches {
				return errPattern
			}
		case ast.StructKind:
			return errGrows
		case ast.ListKind, ast.MapKind:
			if !ast.ConstantValueMatcher()(part) && !isLookedAt(part) {
				return errGrows
			}
		default:
		}
	}
	return nil
}

// isLookedAt says that a list is on the right of what only looks at it, or of what a macro adds to its result, which is
// counted.
func isLookedAt(list ast.NavigableExpr) bool {
	parent, ok := list.Parent()
	if !ok || parent.Kind() != ast.CallKind || len(parent.AsCall().Args()) != 2 || parent.AsCall().Args()[1].ID() != list.ID() {
		return false
	}
	function, left := parent.AsCall().FunctionName(), parent.AsCall().Args()[0]
	return function == operators.In || function == operators.OldIn ||
		function == operators.Add && left.Kind() == ast.IdentKind && left.AsIdent() == parser.HiddenAccumulatorName
}
