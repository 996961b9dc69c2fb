package variant

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
)

// anonymous is a Renderer before which all owners are alike: what is the same but for whose it is, is rendered once. Whatever
// functions copy of an owner's name is the name in the end; what they compute from it is the same for all.
type anonymous struct {
	Renderer
	owner kpt.Owner
}

// Render implements Renderer.
func (a anonymous) Render(ctx context.Context, p kpt.Package) (kpt.Package, []function.Result, error) {
	name, nobody := a.owner.Mark(), kpt.Nobody().Mark()
	if mentions(p, nobody) {
		return a.Renderer.Render(ctx, p) // Whose it is could not be told apart afterwards.
	}
	rendered, results, err := a.Renderer.Render(ctx, replaced(p, name, nobody))
	if failed, ok := errors.AsType[*function.Error](err); ok {
		named := *failed // It is everybody's who waited for the same.
		named.Entry = strings.ReplaceAll(failed.Entry, nobody, name)
		return nil, nil, &named
	}
	if err != nil {
		return nil, nil, err
	}
	for i := range results {
		results[i].Entry = strings.ReplaceAll(results[i].Entry, nobody, name)
		for n, note := range results[i].Notes {
			results[i].Notes[n] = strings.ReplaceAll(note, nobody, name)
		}
	}
	return replaced(rendered, nobody, name), results, nil
}

// nameless is what a package is called before functions that cannot tell.
const nameless = "package"

// rename renames the package and returns what it was called.
func rename(resources *kpt.Resources, name string) (was string, err error) {
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return "", err
	}
	was = kptfile.Name()
	kptfile.SetName(name)
	return was, nil
}

func mentions(p kpt.Package, text string) bool {
	for path, file := range p {
		if strings.Contains(path, text) || bytes.Contains(file.Content, []byte(text)) {
			return true
		}
	}
	return false
}

// replaced is the package with one text in the place of another in all contents.
func replaced(p kpt.Package, was, is string) kpt.Package {
	made := maps.Clone(p)
	for path, file := range p {
		if bytes.Contains(file.Content, []byte(was)) {
			file.Content = bytes.ReplaceAll(file.Content, []byte(was), []byte(is))
			made[path] = file
		}
	}
	return made
}
