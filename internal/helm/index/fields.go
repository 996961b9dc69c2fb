package index

import (
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// versionField reads the value of a version's key. A key that is not known, or spelt in another case, is for the library.
func (r *reader) versionField(v *Version, key string, in int) error {
	if text := v.text(key); text != nil {
		return r.value(text, in)
	}
	switch key {
	case "created":
		return r.time(&v.Created, in)
	case "deprecated":
		return r.flag(&v.Deprecated)
	case "removed":
		return r.flag(&v.Removed)
	case "keywords":
		return r.texts(&v.Keywords, in)
	case "sources":
		return r.texts(&v.Sources, in)
	case "urls":
		return r.texts(&v.URLs, in)
	case "annotations":
		return r.pairs(&v.Annotations, in)
	case "maintainers":
		return objects(r, &v.Maintainers, in, r.maintainerField)
	case "dependencies":
		return objects(r, &v.Dependencies, in, r.dependencyField)
	}
	return errUnusual
}

// text is the field of the key, if that is a string.
func (v *Version) text(key string) *string {
	switch key {
	case "name":
		return &v.Name
	case "version":
		return &v.Version
	case "apiVersion":
		return &v.APIVersion
	case "appVersion":
		return &v.AppVersion
	case "description":
		return &v.Description
	case "digest":
		return &v.Digest
	case "home":
		return &v.Home
	case "icon":
		return &v.Icon
	case "kubeVersion":
		return &v.KubeVersion
	case "type":
		return &v.Type
	case "condition":
		return &v.Condition
	case "tags":
		return &v.Tags
	case "checksum":
		return &v.Checksum
	case "engine":
		return &v.Engine
	case "tillerVersion":
		return &v.TillerVersion
	case "url":
		return &v.URL
	}
	return nil
}

func (r *reader) maintainerField(m *chart.Maintainer, key string, in int) error {
	switch key {
	case "name":
		return r.value(&m.Name, in)
	case "email":
		return r.value(&m.Email, in)
	case "url":
		return r.value(&m.URL, in)
	}
	return errUnusual
}

func (r *reader) dependencyField(d *chart.Dependency, key string, in int) error {
	switch key {
	case "name":
		return r.value(&d.Name, in)
	case "version":
		return r.value(&d.Version, in)
	case "repository":
		return r.value(&d.Repository, in)
	case "condition":
		return r.value(&d.Condition, in)
	case "alias":
		return r.value(&d.Alias, in)
	case "tags":
		return r.texts(&d.Tags, in)
	case "enabled":
		return r.flag(&d.Enabled)
	}
	return errUnusual
}
