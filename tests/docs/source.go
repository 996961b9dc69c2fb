package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Words are what the Go files of some folders say: the strings in them, and the names that are selected from other
// packages or used by themselves.
type Words struct {
	Strings, Names map[string]bool
}

// ReadWords reads the Go files below the folders, without their tests.
func ReadWords(folders ...string) (Words, error) {
	words := Words{Strings: map[string]bool{}, Names: map[string]bool{}}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			return words.read(name)
		})
		if err != nil {
			return Words{}, fmt.Errorf("read the code below %s: %w", folder, err)
		}
	}
	return words, nil
}

func (w Words) read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
				w.Strings[text] = true
			}
		case *ast.Ident:
			w.Names[node.Name] = true
		}
		return true
	})
	return nil
}

// Constants returns the string constants of one Go file whose names end in the suffix, by name.
func Constants(name, suffix string) (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("read constants: %w", err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !strings.HasSuffix(spec.Names[i].Name, suffix) {
				continue
			}
			if text, err := strconv.Unquote(literal.Value); err == nil {
				found[spec.Names[i].Name] = text
			}
		}
		return true
	})
	return found, nil
}
