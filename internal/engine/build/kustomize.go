package build

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/transport"
)

// render does the job where nothing it does can harm others.
func (j *job) render(from source) (output, error) {
	if !j.kustomized() {
		return j.plain(from, false)
	}
	tree := &confined{FileSystem: filesys.MakeEmptyDirInMemory(), from: from, overlay: map[string][]byte{}, quotes: newQuotes(j.Substitute)}
	at, err := j.prepare(tree)
	if err != nil {
		return output{}, tree.explain(err, j.Patches)
	}
	built, err := kustomize(tree, at)
	if err != nil {
		return output{}, tree.explain(err, j.Patches)
	}
	c := newConverter(j.Substitute, false)
	made := make([]rendered, 0, built.Size())
	for _, resource := range built.Resources() {
		origin := "built by kustomize: " + transport.Printable(resource.GetKind()+" "+resource.GetName())
		unmark(resource.YNode())
		object, err := c.object(document{origin: origin, node: resource.YNode()})
		if err != nil {
			return output{}, err
		}
		made = append(made, rendered{origin: origin, object: object})
	}
	return output{made, c.used()}, nil
}

// kustomize calls the library, which panics on some of what people write.
func kustomize(tree *confined, at string) (built resmap.ResMap, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("it cannot cope with what is there: %v", panicked)
		}
	}()
	return krusty.MakeKustomizer(&krusty.Options{
		Reorder: krusty.ReorderOptionNone,
		// The tree itself is the restriction: a base may stand anywhere in the artifact.
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(tree, at)
}

// prepare lays a kustomization with the wishes of the request over the artifact, and says where it is.
func (j *job) prepare(tree *confined) (string, error) {
	if j.Own {
		return j.extend(tree)
	}
	// kustomize is more lenient than we are, so read first what it is going to read.
	files := *j
	files.Substitute, files.Found = nil, nil
	k := j.wishes(tree.quotes)
	for _, f := range j.Found {
		if f.Folder {
			k.Resources = append(k.Resources, relative(f.Name))
			continue
		}
		files.Found = []found{f}
		read, err := files.plain(tree.from, false)
		if err != nil {
			return "", err
		}
		// A file of comments alone is an error to kustomize.
		if len(read.objects) > 0 {
			k.Resources = append(k.Resources, relative(f.Name))
		}
	}
	if len(k.Resources) == 0 {
		return "", ErrEmpty
	}
	return generatedRoot, tree.generate(path.Join(generatedRoot, konfig.DefaultKustomizationFileName()), k)
}

// relative leads from the generated folder to a name of the artifact.
func relative(name string) string { return ".." + path.Join(artifactRoot, name) }

// wishes are what the request adds to a kustomization.
func (j *job) wishes(quotes *quotes) *types.Kustomization {
	k := &types.Kustomization{Namespace: j.TargetNamespace}
	k.Kind, k.APIVersion = types.KustomizationKind, types.KustomizationVersion
	for _, p := range j.Patches {
		patch := types.Patch{Patch: quotes.text(p.Patch)}
		if p.Target != nil && *p.Target != (modulesv1.PatchTarget{}) {
			patch.Target = selector(*p.Target)
		}
		k.Patches = append(k.Patches, patch)
	}
	for _, image := range j.Images {
		k.Images = append(k.Images, types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	return k
}

// extend puts the wishes into the artifact's own kustomization, where kustomize applies them along with what is there.
func (j *job) extend(tree *confined) (string, error) {
	at := path.Join(artifactRoot, j.Path)
	wishes := j.wishes(tree.quotes)
	if wishes.Namespace == "" && len(wishes.Patches) == 0 && len(wishes.Images) == 0 {
		return at, nil
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		file := path.Join(at, name)
		if !tree.Exists(file) || tree.IsDir(file) {
			continue
		}
		content, err := tree.ReadFile(file)
		if err != nil {
			return "", err
		}
		k := &types.Kustomization{}
		if err := k.Unmarshal(content); err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrKustomize, transport.PrintableQuoted(name), transport.SafeError(err))
		}
		if wishes.Namespace != "" {
			k.Namespace = wishes.Namespace
		}
		k.Patches = append(k.Patches, wishes.Patches...)
		k.FixKustomization() // Images may be under an older name.
		k.Images = changeImages(k.Images, wishes.Images)
		return at, tree.generate(file, k)
	}
	return at, nil
}

// changeImages lets each wish for an image change what the artifact says of the same one.
func changeImages(have, wishes []types.Image) []types.Image {
	for _, wish := range wishes {
		same := func(image types.Image) bool { return image.Name == wish.Name }
		if !slices.ContainsFunc(have, same) {
			have = append(have, types.Image{Name: wish.Name})
		}
		for i := range have {
			if same(have[i]) {
				have[i] = changed(have[i], wish)
			}
		}
	}
	return have
}

// changed is what the artifact says of an image, but for what the wish names. A tag and a digest stand for the same.
func changed(image, wish types.Image) types.Image {
	if wish.NewTag != "" || wish.Digest != "" {
		image.NewTag, image.Digest, image.TagSuffix = wish.NewTag, wish.Digest, ""
	}
	image.NewName = cmp.Or(wish.NewName, image.NewName)
	return image
}

func (c *confined) generate(name string, k *types.Kustomization) error {
	content, err := yaml.Marshal(k)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKustomize, err)
	}
	c.overlay[name] = content
	c.quotes.learn(path.Dir(name), k)
	return nil
}

// quotedContent is where kustomize quotes what it works on: patches, literals and lines of files, of which a Secret may be made.
var quotedContent = regexp.MustCompile("(?s)(with config: )`.*`|(patch: )\".*\"|" +
	"((?:literal sources|invalid utf8 bytes :|decoding|for patch) |(?:JsonOp|Patch)=|(?:path in|same time)\\n).*")

// explain puts in front what was refused, since kustomize hides why a file could not be read. Of patches, those of the request are quoted.
func (c *confined) explain(err error, patches []modulesv1.Patch) error {
	if c.refusal != nil {
		return c.refusal
	}
	for _, ours := range []error{ErrEmpty, ErrLimit, ErrDocument, ErrForbidden, ErrVariable, ErrKustomize, errBroken} {
		if errors.Is(err, ours) {
			return err
		}
	}
	text := quotedContent.ReplaceAllStringFunc(err.Error(), func(quoted string) string {
		if slices.ContainsFunc(patches, func(p modulesv1.Patch) bool {
			return quoted == "patch: "+strconv.Quote(strings.TrimSpace(c.quotes.text(p.Patch)))
		}) {
			return quoted
		}
		return quotedContent.ReplaceAllString(quoted, "$1$2$3(hidden)")
	})
	text = strings.NewReplacer(artifactRoot+"/", "", artifactRoot, ".", generatedRoot, "(generated)", quoteMark, "").Replace(text)
	return fmt.Errorf("%w: %w", ErrKustomize, transport.SafeError(errors.New(text)))
}
