package catalog

import (
	"slices"

	"sluice.dev/sluice/internal/revision"
)

// Keys are what a request listens to: index installations by them, and wake those that share a key with a change.
// A request that cannot be answered as it is written listens to its own module alone. Where only a template is named,
// add the ModuleKey of the decision.
func (r Request) Keys() []string {
	var keys []string
	if r.Template != "" {
		keys = append(keys, TemplateKey(r.Template))
	}
	if r.Name == "" {
		return keys
	}
	keys = append(keys, ModuleKey(r.Name))
	selection := r.selections()[0]
	switch selection.By {
	case ByVersion:
		if version, err := revision.ParseStrict(r.Version); err == nil {
			keys = append(keys, key(r.Name, Selection{ByVersion, version.Precedence()}))
		}
	case ByRange, ByLatest:
		keys = append(keys, key(r.Name, Selection{By: ByLatest}))
	case ByChannel, ByDefault:
		keys = append(keys, key(r.Name, selection))
	case ByTemplate:
	}
	return keys
}

// TemplateKey is what a request that names the template listens to, and an installation that runs its release.
func TemplateKey(template string) string { return "template/" + template }

// ModuleKey is the key that all requests for the module by name listen to: for changes of what everyone feels, such as
// which namespaces the module admits.
func ModuleKey(module string) string { return "module/" + module }

// Wakes are the keys of the requests that may be answered differently once the release came, went or changed in this
// catalogue. For a change, join those of the old and of the new release.
func (c *Contents) Wakes(changed Release) []string {
	keys := []string{TemplateKey(changed.Template)}
	entry := c.modules[changed.Module]
	if changed.Module == "" || entry == nil {
		return append(keys, wakesAll(changed)...)
	}
	affected := []Release{changed}
	var channels []string
	if version, err := revision.ParseStrict(changed.Version); err == nil {
		keys = append(keys, key(entry.name, Selection{ByVersion, version.Precedence()}))
		for _, twin := range entry.at(changed.Version) {
			affected = append(affected, twin.Release)
		}
		channels = entry.pointingTo(version)
		keys = append(keys, entry.followers(affected)...)
	}
	for _, release := range affected {
		keys = append(keys, TemplateKey(release.Template))
		if release.Claims() {
			channels = append(channels, release.Channel)
		}
	}
	for _, channel := range channels {
		keys = append(keys, entry.channelKeys(channel)...)
	}
	if !c.shadowsWithout(entry.name, changed.Template) {
		keys = append(keys, wakesAll(changed)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// followers are the keys of those that follow the highest release, if one of the releases is offered to them. One that
// is in a channel alone matters to them only where it contests the version of another that is not.
func (e *entry) followers(releases []Release) []string {
	if !slices.ContainsFunc(releases, func(r Release) bool { return !r.Claims() }) {
		return nil
	}
	keys := []string{key(e.name, Selection{By: ByLatest})}
	if e.byDefault().followsReleases() {
		keys = append(keys, key(e.name, Selection{By: ByDefault}))
	}
	return keys
}

// wakesAll is for a release that makes or breaks its module here: another catalogue may take over.
func wakesAll(changed Release) []string {
	if changed.Module == "" {
		return nil
	}
	return []string{ModuleKey(changed.Module)}
}

// WakesOf are the keys of the requests that may be answered differently once the module's object changed; nil stands
// for none. What namespaces it admits cannot be compared: if that changed, use ModuleKey.
func WakesOf(before, after *Module) []string {
	if before == nil && after == nil {
		return nil
	}
	if before == nil || after == nil {
		return []string{ModuleKey(either(before, after).Name)}
	}
	var keys []string
	wake := func(channel string) {
		keys = append(keys, key(after.Name, Selection{ByChannel, channel}))
		if channel == before.DefaultChannel || channel == after.DefaultChannel {
			keys = append(keys, key(after.Name, Selection{By: ByDefault}))
		}
	}
	for _, channel := range slices.Concat(before.Channels, after.Channels) {
		old, was := before.channel(channel.Name)
		now, is := after.channel(channel.Name)
		switch {
		case old.OneWay != now.OneWay:
			// Who wants to leave the channel asks for something else by now.
			return []string{ModuleKey(after.Name)}
		case was != is || old != now:
			wake(channel.Name)
		}
	}
	if before.DefaultChannel != after.DefaultChannel {
		keys = append(keys, key(after.Name, Selection{By: ByDefault}))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func either(a, b *Module) *Module {
	if a != nil {
		return a
	}
	return b
}

func key(module string, selection Selection) string {
	return ModuleKey(module) + "/" + selection.String()
}

// pointingTo are the channels that the module points to the version.
func (e *entry) pointingTo(version revision.Version) []string {
	var channels []string
	if e.object == nil {
		return nil
	}
	for _, channel := range e.object.Channels {
		if target, err := revision.ParseStrict(channel.Version); err == nil && target.Compare(version) == 0 {
			channels = append(channels, channel.Name)
		}
	}
	return channels
}

func (e *entry) channelKeys(channel string) []string {
	keys := []string{key(e.name, Selection{ByChannel, channel})}
	if e.byDefault() == (Selection{ByChannel, channel}) {
		keys = append(keys, key(e.name, Selection{By: ByDefault}))
	}
	return keys
}
