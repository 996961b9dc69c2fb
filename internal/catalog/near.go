package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

const (
	// maxNear is how many similar names a message lists.
	maxNear = 3
	// maxCompared is how much of two names is compared: a catalogue may have thousands of long ones.
	maxCompared = 40
)

// notFound says what is missing, where was looked, and what is there under a similar name or in the other catalogue.
func (r *resolution) notFound(what, name string, in func(*Contents) map[string]string) string {
	// Where both are looked into, the module may be in the nearer one, and the template in the other.
	looked, elsewhere := []modulesv1.Catalog{modulesv1.CatalogLocal, modulesv1.CatalogSystem}, modulesv1.CatalogSystem
	if r.request.Catalog == modulesv1.CatalogLocal || r.request.Catalog == modulesv1.CatalogSystem || r.keepsCatalog() {
		looked, elsewhere = []modulesv1.Catalog{r.catalog}, modulesv1.CatalogSystem
		if r.catalog == modulesv1.CatalogSystem {
			elsewhere = modulesv1.CatalogLocal
		}
	}
	var places, names []string
	for _, catalog := range looked {
		names = append(names, r.usable(catalog, in)...)
		places = append(places, r.index.place(catalog))
	}
	message := fmt.Sprintf("There is no %s %s %s", what, name, strings.Join(slices.Compact(places), ", and "))
	names = slices.DeleteFunc(names, func(other string) bool { return other == name })
	if similar := Near(name, names); len(similar) > 0 {
		message += "; similar: " + strings.Join(similar, ", ")
	}
	if slices.Contains(r.usable(elsewhere, in), name) {
		message += fmt.Sprintf("; the %s catalogue has one: to use that, set catalog to it", elsewhere)
	}
	return message
}

// place says where a catalogue was looked for.
func (i Index) place(name modulesv1.Catalog) string {
	if namespace := i.at(name).namespace; namespace != "" {
		return "in namespace " + namespace
	}
	return fmt.Sprintf("in the %s catalogue, for which no namespace is set", name)
}

// usable are the names in a catalogue whose modules admit the installation: the others are their teams' to tell.
func (r *resolution) usable(catalog modulesv1.Catalog, in func(*Contents) map[string]string) (names []string) {
	for name, module := range in(r.index.at(catalog)) {
		if r.admits(catalog, module) {
			names = append(names, name)
		}
	}
	return names
}

// moduleNames are the names of modules, each with that of its module.
func (c *Contents) moduleNames() map[string]string {
	names := make(map[string]string, len(c.modules))
	for name := range c.modules {
		names[name] = name
	}
	return names
}

// templateNames are the names of templates, each with that of its module.
func (c *Contents) templateNames() map[string]string {
	names := make(map[string]string, len(c.templates))
	for name, template := range c.templates {
		names[name] = template.Module
	}
	return names
}

// Near are the few names that the one was probably meant to be, the likeliest first.
func Near(name string, names []string) []string {
	cut := func(name string) string { return name[:min(len(name), maxCompared)] }
	edits, most := map[string]int{}, max(1, (len(cut(name))+1)/3)
	for _, candidate := range names {
		begun := strings.HasPrefix(candidate, name) || strings.HasPrefix(name, candidate)
		if longer := len(candidate) - len(name); !begun && (longer > most || -longer > most) {
			continue
		}
		if n := distance(cut(name), cut(candidate)); begun || n <= most {
			edits[candidate] = min(n, most)
		}
	}
	similar := slices.SortedFunc(maps.Keys(edits), func(a, b string) int { return cmp.Or(edits[a]-edits[b], strings.Compare(a, b)) })
	return similar[:min(len(similar), maxNear)]
}

// distance is how many letters have to be put in, taken out or changed to make the one word the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
