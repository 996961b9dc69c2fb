package offers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// needs are the releases that installations need, as this process found them: those of their Inventories, and the one that
// was just chosen. Status says the same, but a round later, and whoever may edit it may say anything else. What both name
// stays, so that a process that has just started loses nothing.
type needs struct {
	mu sync.Mutex
	of map[types.NamespacedName][]*modulesv1.Release
	// users is the way back, from the templates.
	users map[types.NamespacedName]Names
}

func newNeeds() needs {
	return needs{of: map[types.NamespacedName][]*modulesv1.Release{}, users: map[types.NamespacedName]Names{}}
}

// NeedAlso notes one release more. Its namespace has to be one that the installation can choose from.
func (o *Offers) NeedAlso(installation types.NamespacedName, release *modulesv1.Release) {
	o.needs.mu.Lock()
	defer o.needs.mu.Unlock()
	o.needs.put(installation, release)
}

// Need notes that the installation needs these releases and no others. Those that it cannot choose are left out: a record
// that somebody has edited may say what cannot be.
func (o *Offers) Need(installation types.NamespacedName, releases []*modulesv1.Release) {
	o.needs.mu.Lock()
	defer o.needs.mu.Unlock()
	for _, release := range o.needs.of[installation] {
		template := templateOf(release)
		o.needs.users[template].Delete(installation)
		if len(o.needs.users[template]) == 0 {
			delete(o.needs.users, template)
		}
	}
	delete(o.needs.of, installation)
	for _, release := range releases {
		if o.Reach(release.Namespace, installation.Namespace) {
			o.needs.put(installation, release)
		}
	}
}

func (n *needs) put(installation types.NamespacedName, release *modulesv1.Release) {
	template := templateOf(release)
	if n.users[template] == nil {
		n.users[template] = Names{}
	}
	n.users[template].Insert(installation)
	n.of[installation] = append(n.of[installation], release.DeepCopy())
}

// join adds what is needed of the template to the users and their sources.
func (n *needs) join(template types.NamespacedName, users Names, sources map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for installation := range n.users[template] {
		users.Insert(installation)
		for _, release := range n.of[installation] {
			if templateOf(release) == template && release.Source != nil {
				sources[release.Source.Name] = true
			}
		}
	}
}

func templateOf(release *modulesv1.Release) types.NamespacedName {
	return types.NamespacedName{Namespace: release.Namespace, Name: release.Template}
}
