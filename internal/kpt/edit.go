package kpt

import (
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// The parts of a Kptfile, in the order in which kpt writes them.
const (
	partUpstream  = "upstream"
	partLock      = "upstreamLock"
	partInfo      = "info"
	partPipeline  = "pipeline"
	partInventory = "inventory"
	partStatus    = "status"
)

// part is a map at the top of the Kptfile, which is made in its place where it is missing.
func (k *Kptfile) part(name string) *yaml.Node {
	order := []string{partUpstream, partLock, partInfo, partPipeline, partInventory, partStatus}
	if keyIndex(k.root(), name) < 0 {
		insertNode(k.root(), name, newMap(), order[slices.Index(order, name)+1:]...)
	}
	return sure(k.root(), name)
}

// SetName names the package.
func (k *Kptfile) SetName(name string) { setScalar(sure(k.root(), "metadata"), "name", name) }

// SetLabel gives the package a label.
func (k *Kptfile) SetLabel(key, value string) {
	setScalar(sure(k.root(), "metadata", "labels"), key, value)
}

// SetAnnotation gives the package an annotation.
func (k *Kptfile) SetAnnotation(key, value string) {
	setScalar(sure(k.root(), "metadata", "annotations"), key, value)
}

// RemoveAnnotation takes the annotation away.
func (k *Kptfile) RemoveAnnotation(key string) {
	if Lookup(k.root(), "metadata", "annotations", key) == nil {
		return
	}
	remove(sure(k.root(), "metadata", "annotations"), key)
	prune(lookup(k.root(), "metadata"), "annotations")
}

// SetUpstream says what the package is made from; an empty strategy leaves the one that is there.
func (k *Kptfile) SetUpstream(u Upstream) {
	k.setGit(partUpstream, u.Repo, u.Directory, u.Ref)
	if u.Strategy != "" {
		setScalar(k.part(partUpstream), "updateStrategy", u.Strategy)
	}
}

// SetLock says which state of the upstream the package is made from.
func (k *Kptfile) SetLock(l Lock) {
	remove(k.part(partLock), "generic")
	setScalar(k.setGit(partLock, l.Repo, l.Directory, l.Ref), "commit", l.Commit)
}

// setGit makes a part speak of a place in git, and returns what it says of that.
func (k *Kptfile) setGit(part, repo, directory, ref string) *yaml.Node {
	setScalar(k.part(part), "type", "git")
	git := sure(k.part(part), "git")
	setScalar(git, "repo", repo)
	setScalar(git, "directory", directory)
	setScalar(git, "ref", ref)
	return git
}

// SetOwnFunctions makes the entries of the pipeline that are the owner's exactly these, in front of all others. They get the
// names that tell whose they are; entries of people and of other owners stay as and where they are.
func (k *Kptfile) SetOwnFunctions(owner Owner, own Pipeline) error {
	if err := k.setOwn("mutators", owner, own.Mutators); err != nil {
		return err
	}
	if err := k.setOwn("validators", owner, own.Validators); err != nil {
		return err
	}
	prune(k.root(), partPipeline)
	return nil
}

func (k *Kptfile) setOwn(field string, owner Owner, own []Function) error {
	there := Elements(Lookup(k.root(), partPipeline, field))
	ours, others := []*yaml.Node{}, []*yaml.Node{}
	for _, entry := range there {
		if owner.owns(Text(entry, "name")) {
			ours = append(ours, entry)
		} else {
			others = append(others, entry)
		}
	}
	if len(own) == 0 && len(ours) == 0 {
		return nil
	}
	wanted := make([]*yaml.Node, 0, len(own)+len(others))
	for i, function := range own {
		function.Name = owner.FunctionName(i, function.Name)
		entry, err := entryOf(function, ours)
		if err != nil {
			return err
		}
		wanted = append(wanted, entry)
	}
	wanted = append(wanted, others...)
	if slices.Equal(wanted, there) {
		return nil
	}
	sureList(k.part(partPipeline), field).Content = wanted
	prune(k.root(), partPipeline, field)
	return nil
}

// entryOf is the entry for the function: the one that is there already where it says the same.
func entryOf(function Function, there []*yaml.Node) (*yaml.Node, error) {
	fresh := &yaml.Node{}
	if err := fresh.Encode(function); err != nil {
		return nil, err
	}
	for _, entry := range there {
		if sameValue(entry, fresh) {
			return entry, nil
		}
	}
	return fresh, nil
}

// TakeMutators makes the pipeline have the mutators of the other Kptfile, and no validators.
func (k *Kptfile) TakeMutators(from *Kptfile) {
	remove(k.root(), partPipeline)
	if mutators := Lookup(from.root(), partPipeline, "mutators"); mutators != nil {
		setNode(k.part(partPipeline), "mutators", withoutAliases(mutators, new(maxNodes)))
	}
}

// RemoveStatus takes out what was found out about the package.
func (k *Kptfile) RemoveStatus() { remove(k.root(), partStatus) }
