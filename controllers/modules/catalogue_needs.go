package modules

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// needs are the releases that installations need, as this process found them: those of their Inventories, and the one that
// was just chosen. Status says the same, but a round later, and whoever may edit it may say anything else. What both name
// stays, so that a process that has just started loses nothing.
type needs struct {
	mu sync.Mutex
	// of is what each installation needs, by the templates' names; templates is the way back.
	of        map[types.NamespacedName]map[types.NamespacedName]sourceNames
	templates map[types.NamespacedName]map[types.NamespacedName]struct{}
}

// sourceNames are the sources of the releases of one template.
type sourceNames map[string]bool

func newNeeds() *needs {
	return &needs{
		of:        map[types.NamespacedName]map[types.NamespacedName]sourceNames{},
		templates: map[types.NamespacedName]map[types.NamespacedName]struct{}{},
	}
}

// add notes one release more. Its namespace has to be one that the installation can choose from.
func (n *needs) add(installation types.NamespacedName, release *modulesv1.Release) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.put(installation, release)
}

// replace notes that the installation needs these releases and no others.
func (n *needs) replace(installation types.NamespacedName, releases []*modulesv1.Release) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for template := range n.of[installation] {
		delete(n.templates[template], installation)
		if len(n.templates[template]) == 0 {
			delete(n.templates, template)
		}
	}
	delete(n.of, installation)
	for _, release := range releases {
		n.put(installation, release)
	}
}

func (n *needs) put(installation types.NamespacedName, release *modulesv1.Release) {
	template := types.NamespacedName{Namespace: release.Namespace, Name: release.Template}
	if n.of[installation] == nil {
		n.of[installation] = map[types.NamespacedName]sourceNames{}
	}
	if n.of[installation][template] == nil {
		n.of[installation][template] = sourceNames{}
	}
	if release.Source != nil {
		n.of[installation][template][release.Source.Name] = true
	}
	if n.templates[template] == nil {
		n.templates[template] = map[types.NamespacedName]struct{}{}
	}
	n.templates[template][installation] = struct{}{}
}

// join adds what is needed of the template to the users and their sources.
func (n *needs) join(template types.NamespacedName, users map[types.NamespacedName]struct{}, sources map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for installation := range n.templates[template] {
		users[installation] = struct{}{}
		maps.Copy(sources, n.of[installation][template])
	}
}
