package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/objects"
)

// maxManifests is how many bytes of manifests a command reads in all.
const maxManifests = 256 << 20

// manifests are what files say of a catalogue and of who chooses from it. Whatever else is in the files is passed over.
type manifests struct {
	templates     []modulesv1.ModuleTemplate
	modules       []modulesv1.Module
	installations []modulesv1.ModuleInstallation
	// namespaces are the labels of namespaces.
	namespaces map[string]labels.Set

	// namespace is the one of objects that name none, and unplaced are these.
	namespace string
	unplaced  []string
	// places are where the objects stand.
	places map[string]string
	read   int64
}

// readManifests reads files, and the YAML and JSON files of folders and what is below. Hidden ones are passed over.
func readManifests(paths []string, namespace string) (*manifests, error) {
	m := &manifests{namespaces: map[string]labels.Set{}, namespace: namespace, places: map[string]string{}}
	for _, at := range paths {
		if err := m.readPath(at); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *manifests) readPath(at string) error {
	info, err := os.Stat(at)
	if err != nil {
		return unreadable(at, err)
	}
	folder, name := filepath.Split(filepath.Clean(at))
	if info.IsDir() {
		folder, name = at, "."
	}
	if folder == "" {
		folder = "."
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return unreadable(at, err)
	}
	defer func() { _ = root.Close() }()
	if !info.IsDir() {
		return m.readFile(root.FS(), name, at)
	}
	return fs.WalkDir(root.FS(), name, func(inside string, entry fs.DirEntry, err error) error { //nolint:wrapcheck // It says where already.
		shown := filepath.Join(at, inside)
		switch hidden := inside != "." && strings.HasPrefix(path.Base(inside), "."); {
		case err != nil:
			return unreadable(shown, err)
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden, entry.IsDir(), !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(inside)):
			return nil
		}
		return m.readFile(root.FS(), inside, shown)
	})
}

// unreadable names a file that could not be read. Its text stays out: it may be a Secret's.
func unreadable(shown string, err error) *CommandError {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return &CommandError{Code: ExitUnanswered, What: "read " + shown, Why: err.Error()}
}

// values are what a parser of YAML quotes of a document, such as a password that looks like an alias. Keys have other quotes.
var values = regexp.MustCompile("`.*`|'[^']{2,}'")

func (m *manifests) readFile(in fs.FS, name, shown string) error {
	file, err := in.Open(name)
	if err != nil {
		return unreadable(shown, err)
	}
	defer func() { _ = file.Close() }()
	limited := &io.LimitedReader{R: file, N: maxManifests - m.read + 1}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(limited))
	for i := 1; ; i++ {
		text, err := documents.Read()
		m.read += int64(len(text))
		place := fmt.Sprintf("%s, document %d", shown, i)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unreadable(place, err)
		case limited.N <= 0:
			return unreadable(shown, fmt.Errorf("the files hold more than %d MiB", maxManifests>>20))
		}
		raw, err := yaml.YAMLToJSONStrict(text)
		if err == nil {
			err = m.add(raw, place)
		} else {
			err = errors.New(values.ReplaceAllString(err.Error(), "a value"))
		}
		if err != nil {
			return unreadable(place, err)
		}
	}
}

// add takes one object, or those of a list.
func (m *manifests) add(raw []byte, place string) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`

		Items []runtime.RawExtension `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil || head.Kind == "" {
		return nil //nolint:nilerr // What is no object is none of ours.
	}
	ours := head.APIVersion == modulesv1.GroupVersion.String()
	switch {
	case strings.HasSuffix(head.Kind, "List") && (ours || head.APIVersion == "v1"):
		for _, item := range head.Items {
			if err := m.add(item.Raw, place); err != nil {
				return err
			}
		}
	case head.APIVersion == "v1" && head.Kind == "Namespace":
		var obj corev1.Namespace
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj); err != nil {
			return fmt.Errorf("read Namespace: %w", err)
		}
		m.namespaces[obj.Name] = obj.Labels
	case ours && head.Kind == modulesv1.ModuleTemplateKind:
		type plain modulesv1.ModuleTemplate
		return take(m, raw, place, func(p *plain) *modulesv1.ModuleTemplate { return (*modulesv1.ModuleTemplate)(p) }, &m.templates)
	case ours && head.Kind == modulesv1.ModuleKind:
		type plain modulesv1.Module
		return take(m, raw, place, func(p *plain) *modulesv1.Module { return (*modulesv1.Module)(p) }, &m.modules)
	case ours && head.Kind == modulesv1.ModuleInstallationKind:
		type plain modulesv1.ModuleInstallation
		return take(m, raw, place, func(p *plain) *modulesv1.ModuleInstallation { return (*modulesv1.ModuleInstallation)(p) }, &m.installations)
	}
	return nil
}

// take decodes an object and refuses fields that the kind does not have, which API servers would drop. Plain is the kind without
// the decoding that never fails.
func take[Plain, Kind any, Object interface {
	*Kind
	metav1.Object
}](m *manifests, raw []byte, place string, kindOf func(*Plain) Object, to *[]Kind,
) error {
	var plain Plain
	unknown, err := kjson.UnmarshalStrict(raw, &plain)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	obj := kindOf(&plain)
	if obj.GetName() == "" {
		return fmt.Errorf("%T has no name", *obj)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(m.namespace)
		m.unplaced = append(m.unplaced, obj.GetName())
	}
	key := fmt.Sprintf("%T %s/%s", *obj, obj.GetNamespace(), obj.GetName())
	key = key[strings.LastIndexByte(key[:strings.IndexByte(key, ' ')], '.')+1:]
	if before := m.places[key]; before != "" {
		return fmt.Errorf("%s stands in %s too", key, before)
	}
	m.places[key] = place
	*to = append(*to, *obj)
	return nil
}

// installation is the one of that name, if the files have it.
func (m *manifests) installation(namespace, name string) *modulesv1.ModuleInstallation {
	for i := range m.installations {
		if m.installations[i].Namespace == namespace && m.installations[i].Name == name {
			return &m.installations[i]
		}
	}
	return nil
}

// templatesOver are the templates of a namespace as they are once the files are applied. What is there keeps its status.
func (m *manifests) templatesOver(live []modulesv1.ModuleTemplate, namespace string, now time.Time) []modulesv1.ModuleTemplate {
	return over(live, m.templates, namespace, now, func(to *modulesv1.ModuleTemplate, edited modulesv1.ModuleTemplate) {
		to.Spec, to.Undecodable, to.Annotations, to.Labels = edited.Spec, "", edited.Annotations, edited.Labels
	})
}

// asEdited reads templates as they are once the files are applied, as long as they stand for the same content.
type asEdited struct {
	client.WithWatch

	files *manifests
}

// Get implements client.Reader.
func (e asEdited) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	err := e.WithWatch.Get(ctx, key, obj, options...)
	if template, is := obj.(*modulesv1.ModuleTemplate); is && err == nil {
		edited := e.files.templatesOver([]modulesv1.ModuleTemplate{*template}, key.Namespace, time.Time{})[0]
		if objects.ContentOf(&edited) == objects.ContentOf(template) {
			*template = edited
		}
	}
	return err //nolint:wrapcheck // As a client's own.
}

// modulesOver are the namespace's modules likewise.
func (m *manifests) modulesOver(live []modulesv1.Module, namespace string, now time.Time) []modulesv1.Module {
	return over(live, m.modules, namespace, now, func(to *modulesv1.Module, edited modulesv1.Module) { to.Spec, to.Undecodable = edited.Spec, "" })
}

// over edits the objects that are there, and adds the others as if they were made now.
func over[Kind any, Object interface {
	*Kind
	metav1.Object
}](live, edited []Kind, namespace string, now time.Time, edit func(*Kind, Kind),
) []Kind {
	at := map[string]int{}
	for i := range live {
		at[Object(&live[i]).GetName()] = i
	}
	for _, one := range edited {
		obj := Object(&one)
		if obj.GetNamespace() != namespace {
			continue
		}
		if i, there := at[obj.GetName()]; there {
			edit(&live[i], one)
			continue
		}
		if created := obj.GetCreationTimestamp(); created.IsZero() {
			obj.SetCreationTimestamp(metav1.Time{Time: now})
		}
		live = append(live, one)
	}
	return live
}
