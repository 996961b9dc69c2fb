package script

import (
	"fmt"
	"math/big"

	"go.starlark.net/syntax"
)

// Names of functions that rewritten trees call. No script can write them.
const (
	opBinary = "$binary"
	opUpdate = "$update"
	opUpdIdx = "$updateindex"
	opAttr   = "$attr"
	opKey    = "$key"
	opSpread = "$spread"
	opMade   = "$made"
)

// guard rewrites the tree of a script. Operators become calls, and so do attributes, as a method that was taken from its object
// would pass by any guard; keys of maps, parts of lists and arguments that are spread are looked at on their way. What is
// left takes so much for each step of the interpreter, and no more.
func guard(file *syntax.File) error {
	g := &guarding{}
	g.block(file.Stmts)
	return g.err
}

// guarding goes through a tree. The first thing that there is not in this language ends it.
type guarding struct{ err error }

func (g *guarding) refuse(at syntax.Position, what string) {
	if g.err == nil {
		g.err = fmt.Errorf("line %d: %s", at.Line, what)
	}
}

func (g *guarding) block(statements []syntax.Stmt) {
	for i := range statements {
		statements[i] = g.statement(statements[i])
	}
}

func (g *guarding) statement(s syntax.Stmt) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		return g.assign(s)
	case *syntax.DefStmt:
		g.arguments(s.Params, false)
		g.block(s.Body)
	case *syntax.ExprStmt:
		s.X = g.expr(s.X)
	case *syntax.ForStmt:
		g.target(s.Vars)
		s.X = g.expr(s.X)
		g.block(s.Body)
	case *syntax.WhileStmt:
		s.Cond = g.expr(s.Cond)
		g.block(s.Body)
	case *syntax.IfStmt:
		s.Cond = g.expr(s.Cond)
		g.block(s.True)
		g.block(s.False)
	case *syntax.ReturnStmt:
		s.Result = g.expr(s.Result)
	case *syntax.BranchStmt:
	case *syntax.LoadStmt:
		g.refuse(s.Load, "there is no load: a script is all in its source")
	default:
		start, _ := s.Span()
		g.refuse(start, "there is no such statement")
	}
	return s
}

func (g *guarding) assign(s *syntax.AssignStmt) syntax.Stmt {
	if s.Op == syntax.EQ {
		g.target(s.LHS)
		s.RHS = g.expr(s.RHS)
		return s
	}
	operator := s.Op - syntax.PLUS_EQ + syntax.PLUS
	at, right := s.OpPos, g.expr(s.RHS)
	switch left := unparen(s.LHS).(type) {
	case *syntax.Ident:
		g.target(left)
		value := &syntax.Ident{NamePos: left.NamePos, Name: left.Name}
		return &syntax.AssignStmt{OpPos: at, Op: syntax.EQ, LHS: left, RHS: call(at, opUpdate, text(at, operator.String()), value, right)}
	case *syntax.IndexExpr:
		return &syntax.ExprStmt{X: call(at, opUpdIdx, text(at, operator.String()), g.expr(left.X), g.key(left.Y), right)}
	default:
		g.refuse(at, "this cannot be assigned to")
		return s
	}
}

// target is what a value is assigned to.
func (g *guarding) target(e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.Ident:
	case *syntax.ParenExpr:
		g.target(e.X)
	case *syntax.ListExpr:
		g.targets(e.List)
	case *syntax.TupleExpr:
		g.targets(e.List)
	case *syntax.IndexExpr:
		e.X, e.Y = g.expr(e.X), g.key(e.Y)
	default:
		start, _ := e.Span()
		g.refuse(start, "this cannot be assigned to")
	}
}

func (g *guarding) targets(list []syntax.Expr) {
	for _, e := range list {
		g.target(e)
	}
}

// arguments are those of a call, or the parameters of a function: of name=value it is the value that is an expression. What a call
// spreads is looked at when it does.
func (g *guarding) arguments(list []syntax.Expr, isCall bool) {
	for i, e := range list {
		switch e := e.(type) {
		case *syntax.BinaryExpr:
			if e.Op == syntax.EQ {
				e.Y = g.expr(e.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if e.Op == syntax.STAR || e.Op == syntax.STARSTAR {
				if isCall {
					e.X = call(e.OpPos, opSpread, g.expr(e.X))
				}
				continue
			}
		}
		list[i] = g.expr(e)
	}
}

func (g *guarding) exprs(list []syntax.Expr) {
	for i := range list {
		list[i] = g.expr(list[i])
	}
}

// expr is the expression to compile in the place of this one, which may be nil.
func (g *guarding) expr(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case nil:
		return nil
	case *syntax.Ident:
	case *syntax.Literal:
		g.literal(e)
	case *syntax.ParenExpr:
		e.X = g.expr(e.X)
	case *syntax.ListExpr:
		g.exprs(e.List)
	case *syntax.TupleExpr:
		g.exprs(e.List)
	case *syntax.CondExpr:
		e.Cond, e.True, e.False = g.expr(e.Cond), g.expr(e.True), g.expr(e.False)
	case *syntax.LambdaExpr:
		g.arguments(e.Params, false)
		e.Body = g.expr(e.Body)
	case *syntax.UnaryExpr:
		e.X = g.expr(e.X)
	case *syntax.IndexExpr:
		e.X, e.Y = g.expr(e.X), g.key(e.Y)
	case *syntax.CallExpr:
		e.Fn = g.expr(e.Fn)
		g.arguments(e.Args, true)
	case *syntax.DotExpr:
		return call(e.Dot, opAttr, g.expr(e.X), text(e.NamePos, e.Name.Name))
	case *syntax.SliceExpr:
		e.X, e.Lo, e.Hi, e.Step = g.expr(e.X), g.expr(e.Lo), g.expr(e.Hi), g.expr(e.Step)
		return call(e.Lbrack, opMade, e)
	case *syntax.DictExpr:
		for _, entry := range e.List {
			g.entry(entry)
		}
		return call(e.Lbrace, opMade, e)
	case *syntax.BinaryExpr:
		e.X, e.Y = g.expr(e.X), g.expr(e.Y)
		if e.Op != syntax.AND && e.Op != syntax.OR {
			return call(e.OpPos, opBinary, text(e.OpPos, e.Op.String()), e.X, e.Y)
		}
	case *syntax.Comprehension:
		return g.comprehension(e)
	default:
		start, _ := e.Span()
		g.refuse(start, "there is no such expression")
	}
	return e
}

func (g *guarding) comprehension(e *syntax.Comprehension) syntax.Expr {
	for _, clause := range e.Clauses {
		switch clause := clause.(type) {
		case *syntax.ForClause:
			g.target(clause.Vars)
			clause.X = g.expr(clause.X)
		case *syntax.IfClause:
			clause.Cond = g.expr(clause.Cond)
		}
	}
	if !g.entry(e.Body) {
		e.Body = g.expr(e.Body)
	}
	return call(e.Lbrack, opMade, e)
}

// entry is a key and a value of a map.
func (g *guarding) entry(e syntax.Expr) bool {
	entry, ok := e.(*syntax.DictEntry)
	if ok {
		entry.Key, entry.Value = g.key(entry.Key), g.expr(entry.Value)
	}
	return ok
}

// key is what something is found by. What is written in the script is short.
func (g *guarding) key(e syntax.Expr) syntax.Expr {
	if literal, ok := e.(*syntax.Literal); ok {
		return g.expr(literal)
	}
	start, _ := e.Span()
	return call(start, opKey, g.expr(e))
}

func (g *guarding) literal(e *syntax.Literal) {
	if e.Token == syntax.BYTES {
		g.refuse(e.TokenPos, "there are no bytes; strings are text")
	}
	if number, ok := e.Value.(*big.Int); ok && number.BitLen() > maxBits {
		g.refuse(e.TokenPos, fmt.Sprintf("an integer has at most %d bits", maxBits))
	}
}

func unparen(e syntax.Expr) syntax.Expr {
	for {
		inner, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = inner.X
	}
}

func call(at syntax.Position, name string, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: name}, Lparen: at, Args: args, Rparen: at}
}

func text(at syntax.Position, value string) *syntax.Literal {
	return &syntax.Literal{Token: syntax.STRING, TokenPos: at, Raw: `""`, Value: value}
}
