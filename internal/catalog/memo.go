package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// Memo resolves for many installations at one time, of which most ask for the same. Its decisions may not be changed. It is not for
// several goroutines.
type Memo struct {
	now      time.Time
	known    map[string]memory
	restrict map[*Contents][]string
}

// memory is a decision that was made. One that is shared does not depend on whose it was.
type memory struct {
	Decision

	shared bool
}

// NewMemo remembers what is decided at the time.
func NewMemo(now time.Time) *Memo {
	return &Memo{now: now, known: map[string]memory{}, restrict: map[*Contents][]string{}}
}

// Resolve is Resolve.
func (m *Memo) Resolve(request Request, installed Installed, index Index) Decision {
	key, err := m.key(request, installed, index)
	if err != nil {
		return Resolve(request, installed, index, m.now)
	}
	if known, found := m.known[key]; found && known.shared {
		return known.Decision
	} else if found {
		key += request.Namespace
		if known, found = m.known[key]; found {
			return known.Decision
		}
	}
	made := memory{Decision: Resolve(request, installed, index, m.now)}
	// Whatever names the namespace says something of it.
	told, err := json.Marshal(made.Decision)
	made.shared = err == nil && !strings.Contains(string(told), request.Namespace)
	m.known[key] = made
	if !made.shared {
		m.known[key+request.Namespace] = made
	}
	return made.Decision
}

// key is all that a decision depends on but the namespace's name, and that too where something that ran came from it.
func (m *Memo) key(request Request, installed Installed, index Index) (string, error) {
	namespace := request.Namespace
	request.Namespace = ""
	for _, ran := range []*modulesv1.Release{installed.Current, installed.Previous, installed.Attempted} {
		if ran != nil && ran.Namespace == namespace {
			request.Namespace = namespace
		}
	}
	local := index.Local
	if local != nil && len(local.modules)+len(local.templates) == 0 {
		local = nil
	}
	if index.System != nil && index.System.namespace == namespace {
		request.Namespace = namespace
	}
	raw, err := json.Marshal([]any{request, installed, m.admitted(namespace, index.System)})
	return fmt.Sprintf("%p %p %s", local, index.System, raw), err //nolint:wrapcheck // It is not shown.
}

// admitted says which modules of the system catalogue admit the namespace, of those that ask who it is.
func (m *Memo) admitted(namespace string, system *Contents) []bool {
	if system == nil {
		return nil
	}
	names, known := m.restrict[system]
	if !known {
		for _, name := range slices.Sorted(maps.Keys(system.modules)) {
			if object := system.modules[name].object; object != nil && object.Admits != nil {
				names = append(names, name)
			}
		}
		m.restrict[system] = names
	}
	var admitted []bool
	for _, name := range names {
		admitted = append(admitted, system.modules[name].object.Admits(namespace))
	}
	return admitted
}
