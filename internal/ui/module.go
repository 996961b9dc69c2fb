package ui

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// Module is what a catalogue has of a module, and who has it.
type Module struct {
	Namespace, Name string
	// HasObject says that there is an object of that name, and Description what it tells users.
	HasObject   bool
	Description string
	Channels    []catalog.ChannelStatus
	// Releases are in the order of their precedence, and Findings what is to be said of their templates.
	Releases []catalog.Release
	Findings map[string][]catalog.Finding
	Users    []ModuleUser
	// Unseen is how many installations ask for a module of the name that no controller has looked at yet.
	Unseen int
	// Read says that the catalogue could be read, and Lacking what could not be, and why.
	Read    bool
	Lacking []string
}

// ModuleUser is an installation that chooses from the module's releases, or has one of them.
type ModuleUser struct {
	Namespace, Name string
	// Left says that it chooses from another module, and still has a release of this one.
	Left bool
	// SelectedBy is how its release is selected, and Channel the channel if that is how.
	SelectedBy, Channel string
	// Has is the release of the module that is installed, and Gets the one that was chosen, if that is another one.
	Has, Gets ModuleRelease
	// Waits is in one word why it does not go there; empty while it is on its way.
	Waits string
}

// ModuleRelease names a release of a module.
type ModuleRelease struct{ Template, Version string }

// ModuleName names a module of a catalogue.
type ModuleName struct{ Namespace, Name string }

// Path is that of its page, below the base.
func (m ModuleName) Path() string {
	return path.Join("modules", url.PathEscape(m.Namespace), url.PathEscape(m.Name))
}

// What a module's page has at the most.
const (
	maxModuleRows, maxModuleColumns = 100, 8
	// moduleRest is how long the page rests between two times that it reads all installations anew.
	moduleRest = 5 * time.Second
)

// tally is how many installations have what they are counted for, how many are on their way to it, and how many are held.
type tally struct{ Has, Coming, Held int }

func (t *tally) add(has bool, waits string) {
	switch {
	case has:
		t.Has++
	case waits == "":
		t.Coming++
	default:
		t.Held++
	}
}

// Any says that there are any.
func (t tally) Any() bool { return t != tally{} }

// isSettled says that the installation has what was chosen for it.
func (o ModuleUser) isSettled() bool { return o.Gets == ModuleRelease{} && o.Waits == "" && !o.Left }

// moduleCell is a release by a channel. To are the installations that are counted.
type moduleCell struct {
	tally

	Leads bool
	To    string
}

// releaseLink is a release, and where its template is shown.
type releaseLink struct {
	ModuleRelease
	To string
}

// At is a release of the module.
func (m *moduled) At(template, version string) releaseLink {
	return releaseLink{ModuleRelease{template, version}, at(modulesv1.GroupVersion.Group, modulesv1.ModuleTemplateKind, m.Namespace, template)}
}

// LastDay is the last one of support; empty for no end.
func (r moduleRow) LastDay() string {
	if r.Support.Until.IsZero() {
		return ""
	}
	return r.Support.Until.AddDate(0, 0, -1).Format(time.DateOnly)
}

// moduleRow is a release, by each channel, by none, and in all.
type moduleRow struct {
	catalog.Release

	State    modulesv1.SupportState
	Findings []catalog.Finding
	// Gone says that the catalogue does not have it, as far as that is known.
	Gone  bool
	Cells []moduleCell
}

// moduleChannel is a channel, and who follows it.
type moduleChannel struct {
	catalog.ChannelStatus
	tally

	// Unknown says that the catalogue could not be read.
	Unknown bool
	To      string
}

// moduled is the page of a module.
type moduled struct {
	*Module

	Path string
	All  tally
	// Choose is how many installations choose from the module, and Left how many have a release of it alone.
	Choose, Left int
	Channels     []moduleChannel
	Columns      []string
	Rows         []moduleRow
	Users        []ModuleUser
	// Shown says which of the installations are asked for; empty for all.
	Shown string
	// MoreChannels and so on are how many there are beside those.
	MoreChannels, MoreColumns, MoreRows, MoreUsers int
}

// module shows a module of a catalogue.
func (u *UI) module(w http.ResponseWriter, r *http.Request) {
	may := u.mayOf(r.Context(), loginOf(r), countsForModules, "")
	found, err := loginOf(r).Reader.Module(r.Context(), r.PathValue("namespace"), r.PathValue("name"), u.index.usersOf(may, r.PathValue("name")))
	if err != nil {
		u.refuse(w, r, err)
		return
	}
	made := moduled{Module: found, Path: u.base + ModuleName{found.Namespace, found.Name}.Path()}
	made.sum(u.Now(), r.URL.Query())
	troubles := append(u.index.troubles(may, countsForModules), found.Lacking...)
	u.show(w, r, http.StatusOK, "module", pageOf{Title: "Module " + found.Namespace + "/" + found.Name, Here: "modules", Troubles: troubles, Content: &made})
}

// usersOf are the namespaces with installations of a module that somebody may see who may not see those of all; nil for who may.
func (x *index) usersOf(may *scope, module string) []string {
	installations := func(k Kind) bool { return k.Kind == installationKind }
	if may.all || !slices.ContainsFunc(x.kindsFor(installations), func(k Kind) bool { return !may.everywhere[k.Resource] }) {
		return nil
	}
	in := map[string]bool{}
	for _, row := range x.all(may, installations) {
		if row.isOf(module) {
			in[row.Namespace] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(in))...)
}

// countsForModules says that objects of the kind have a say in how modules' pages look.
func countsForModules(k Kind) bool { return k.Page == "modules" || k.Kind == installationKind }

// sum makes the tables. What is asked for narrows the one of installations.
func (m *moduled) sum(now time.Time, asked url.Values) {
	m.follow()
	for _, channel := range m.Channels[:min(len(m.Channels), maxModuleColumns)] {
		m.Columns = append(m.Columns, channel.Name)
	}
	m.MoreColumns = len(m.Channels) - len(m.Columns)
	rows := m.releases(now)
	// What nobody has, and no channel leads to, is the first to be left out.
	for i := len(rows) - 1; i >= 0 && len(rows) > maxModuleRows; i-- {
		if !slices.ContainsFunc(rows[i].Cells, func(c moduleCell) bool { return c.Leads || c.Any() }) {
			rows, m.MoreRows = slices.Delete(rows, i, i+1), m.MoreRows+1
		}
	}
	m.Rows, m.MoreRows = first(rows, m.MoreRows)
	m.Channels, m.MoreChannels = first(m.Channels, 0)
	m.users(asked)
}

func first[T any](all []T, more int) (kept []T, left int) {
	kept = all[:min(len(all), maxModuleRows)]
	return kept, more + len(all) - len(kept)
}

// follow counts who follows each channel. One that is not there any more may still be followed.
func (m *moduled) follow() {
	at := map[string]int{}
	for _, channel := range m.Module.Channels {
		at[channel.Name] = len(m.Channels)
		m.Channels = append(m.Channels, moduleChannel{ChannelStatus: channel})
	}
	for _, one := range m.Module.Users {
		if one.Left {
			m.Left++
			continue
		}
		m.Choose++
		m.All.add(one.isSettled(), one.Waits)
		if one.Channel == "" {
			continue
		}
		if _, known := at[one.Channel]; !known {
			at[one.Channel] = len(m.Channels)
			lost := moduleChannel{Unknown: !m.Read, ChannelStatus: catalog.ChannelStatus{Channel: modulesv1.Channel{Name: one.Channel}}}
			if m.Read {
				lost.Reason = modulesv1.ChannelNotFoundReason
			}
			m.Channels = append(m.Channels, lost)
		}
		m.Channels[at[one.Channel]].add(one.isSettled(), one.Waits)
	}
	for i := range m.Channels {
		m.Channels[i].To = m.Path + "?" + url.Values{"channel": {m.Channels[i].Name}}.Encode() + "#users"
	}
}

// releases are those of the catalogue, and those that installations have all the same, with who has them.
func (m *moduled) releases(now time.Time) []moduleRow {
	var rows []moduleRow
	at := map[ModuleRelease]int{}
	for _, release := range m.Releases {
		at[ModuleRelease{release.Template, release.Version}] = len(rows)
		rows = append(rows, m.row(moduleRow{Release: release, State: release.State(now), Findings: m.Findings[release.Template]}))
	}
	for _, one := range m.Module.Users {
		column := slices.Index(m.Columns, one.Channel)
		if one.Channel == "" {
			column = len(m.Columns)
		}
		for i, release := range []ModuleRelease{one.Has, one.Gets} {
			has := i == 0 // One whose content has changed is had and got.
			if release.Template == "" {
				continue
			}
			if _, known := at[release]; !known {
				at[release] = len(rows)
				rows = append(rows, m.row(moduleRow{Release: catalog.Release{Template: release.Template, Version: release.Version}, Gone: m.Read}))
			}
			cells := rows[at[release]].Cells
			cells[len(cells)-1].add(has, one.Waits)
			if column >= 0 {
				cells[column].add(has, one.Waits)
			}
		}
	}
	return rows
}

// row has a cell for each channel, one for none, and one for all.
func (m *moduled) row(made moduleRow) moduleRow {
	link := url.Values{"template": {made.Template}, "version": {made.Version}}
	for i, name := range append(slices.Clone(m.Columns), modulesv1.NoChannel) {
		link.Set("channel", name)
		made.Cells = append(made.Cells, moduleCell{To: m.Path + "?" + link.Encode() + "#users"})
		if i < len(m.Columns) && m.Channels[i].Release != nil {
			made.Cells[i].Leads = m.Channels[i].Release.Template == made.Template && !made.Gone
		}
	}
	link.Del("channel")
	made.Cells = append(made.Cells, moduleCell{To: m.Path + "?" + link.Encode() + "#users"})
	return made
}

// users are the installations that are asked for, those first that do not have what was chosen.
func (m *moduled) users(asked url.Values) {
	channel, release := asked.Get("channel"), ModuleRelease{asked.Get("template"), asked.Get("version")}
	var said []string
	if release.Template != "" {
		said = append(said, strings.TrimSpace("of "+release.Version)+" ("+release.Template+")")
	}
	switch channel {
	case "":
	case modulesv1.NoChannel:
		said = append(said, "in no channel")
	default:
		said = append(said, "in channel "+channel)
	}
	m.Shown = strings.Join(said, " ")
	all := slices.DeleteFunc(slices.Clone(m.Module.Users), func(one ModuleUser) bool {
		return channel != "" && cmp.Or(one.Channel, modulesv1.NoChannel) != channel ||
			release.Template != "" && one.Has != release && one.Gets != release
	})
	slices.SortFunc(all, func(a, b ModuleUser) int {
		if late := !a.isSettled(); late == b.isSettled() {
			return map[bool]int{true: -1, false: 1}[late]
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	m.Users, m.MoreUsers = first(all, 0)
}

// moduleTitle is the title of the column that names an object's module.
const moduleTitle = "module"

// moduleOf is the module that the row's object is of; empty where it does not say.
func (r *Row) moduleOf() string {
	at := slices.IndexFunc(r.Kind.Columns, func(c Column) bool { return c.Title == moduleTitle })
	if at < 0 || at >= len(r.Cells) {
		return ""
	}
	return r.Cells[at]
}

// isOf says that the row's object is of the module, or has a release of it.
func (r *Row) isOf(module string) bool { return r.moduleOf() == module || r.has == module }

// countedOf is what modules' pages count of an installation, in short: what it asks for, has and gets, and whether it waits.
func countedOf(obj *unstructured.Unstructured) (has string, sum uint64) {
	of := fnv.New64a()
	for _, path := range [][]string{
		{"spec", "module"},
		{"spec", "suspend"},
		{"spec", "management"},
		{"status", "resolution", "namespace"},
		{"status", "resolution", "module"},
		{"status", "resolution", "selectedBy"},
		{"status", "current"},
		{"status", "desired"},
		{"status", "pending", "reason"},
	} {
		found, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
		fmt.Fprintln(of, found)
	}
	has, _, _ = unstructured.NestedString(obj.Object, "status", "current", "module")
	return has, of.Sum64()
}

// lookOfModule is how a module's page looks: as what is counted on it. How the objects are otherwise has no say.
func (u *UI) lookOfModule(who *login, namespace, name string) look {
	return look{wanted: countsForModules, rest: moduleRest, now: func(ctx context.Context) seen {
		var marks []string
		may := u.mayOf(ctx, who, countsForModules, "")
		for _, row := range u.index.all(may, countsForModules) {
			switch {
			case !row.isOf(name):
			case row.Kind.Kind == installationKind:
				marks = append(marks, fmt.Sprint(row.UID, row.counted))
			case row.Namespace == namespace:
				marks = append(marks, string(row.UID)+row.version)
			}
		}
		slices.Sort(marks)
		return seen{Whole: digestOf(marks, u.index.troubles(may, countsForModules))}
	}}
}

// cell is a row's, with the module's page where it names one.
type cell struct{ Text, To string }

// Cell is the i-th one of a row.
func (r rowOf) Cell(i int) cell {
	made := cell{Text: r.Cells[i]}
	if r.Kind.Page == "modules" && r.Kind.Columns[i].Title == moduleTitle && made.Text != "" {
		made.To = ModuleName{r.Namespace, made.Text}.Path()
	}
	return made
}
