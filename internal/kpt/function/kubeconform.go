package function

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/schema"
)

const (
	// maxFindings bounds how many findings are told at once.
	maxFindings = 20
	// maxChecks bounds how many values of a package are compared with parts of schemas.
	maxChecks = 5_000_000
)

// kubeconform compares all objects that go to the cluster with the schemas of their kinds: those of the package's own
// CustomResourceDefinitions, and else those of the API server.
func kubeconform(ctx context.Context, r *run) error {
	settings, err := readConformity(r.config)
	if err != nil {
		return err
	}
	c := &conformity{run: r, conformitySettings: settings, check: schema.Check{Strict: settings.Strict, Steps: maxChecks}, documents: map[apiOf]*schema.Document{}}
	if c.defined, err = definitions(r.seen); err != nil {
		return err
	}
	for _, o := range r.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.resource.IsLocalConfig() {
			continue
		}
		if err := c.object(ctx, o); err != nil {
			return err
		}
		if len(c.findings) >= maxFindings {
			break
		}
	}
	return c.report()
}

// conformitySettings are the function's own kind.
type conformitySettings struct {
	head          `yaml:",inline"`
	Strict        bool     `yaml:"strict"`
	IgnoreMissing bool     `yaml:"ignoreMissingSchemas"`
	SkipKinds     []string `yaml:"skipKinds"`
}

func readConformity(c *config) (conformitySettings, error) {
	read := conformitySettings{}
	if c == nil {
		return read, nil
	}
	if c.own != nil {
		return read, c.decode(&read, "Kubeconform")
	}
	for _, key := range []string{"schema_location", "schema_locations", "additional_schema_locations", "kubernetes_version"} {
		if c.data[key] != "" {
			return read, fmt.Errorf("data.%s: cannot be chosen: the schemas are those of the API server", key)
		}
	}
	err := c.only("ignore_missing_schemas", "ignoreMissingSchemas", "skip_kinds", "skipKinds", "strict")
	flag := func(names ...string) bool {
		set := false
		for _, name := range names {
			if text, found := c.data[name]; found && err == nil {
				if set, err = strconv.ParseBool(text); err != nil {
					err = fmt.Errorf("data.%s: is %q, and has to be true or false", name, text)
				}
			}
		}
		return set
	}
	read.Strict, read.IgnoreMissing = flag("strict"), flag("ignore_missing_schemas", "ignoreMissingSchemas")
	for kind := range strings.SplitSeq(c.data["skip_kinds"]+","+c.data["skipKinds"], ",") {
		if kind = strings.TrimSpace(kind); kind != "" {
			read.SkipKinds = append(read.SkipKinds, kind)
		}
	}
	return read, err
}

// conformity is the validation of one package.
type conformity struct {
	*run
	conformitySettings

	check     schema.Check
	defined   map[schema.GroupVersionKind]*schema.Document
	documents map[apiOf]*schema.Document
	findings  []*Error
	// wrong is that something does not fit a schema that there is.
	wrong bool
}

// object compares one with its schema.
func (c *conformity) object(ctx context.Context, o *object) error {
	group, version := o.resource.GroupVersion()
	kind := schema.GroupVersionKind{Group: group, Version: version, Kind: o.kind()}
	if slices.Contains(c.SkipKinds, kind.Kind) || slices.Contains(c.SkipKinds, kpt.Text(o.root, "apiVersion")+"/"+kind.Kind) {
		return nil
	}
	d, err := c.document(ctx, kind)
	switch {
	case err != nil:
		return err
	case !d.Has(kind) && c.IgnoreMissing:
		c.note("%s in %s is not validated: no schema of its kind is known", o.resource.ID(), o.resource.File)
		return nil
	case !d.Has(kind):
		c.find(o, []string{"kind"}, fmt.Errorf("%w: neither the API server nor a CustomResourceDefinition of the package has %s of %s",
			ErrUnknownKind, kind.Kind, kpt.Text(o.root, "apiVersion")))
		return nil
	}
	c.check.Findings = maxFindings - len(c.findings)
	found, err := c.check.Object(ctx, d, kind, o.root)
	if errors.Is(err, schema.ErrTooMuch) {
		return o.fail(nil, fmt.Errorf("%w: %w: more than %d, or deeper than anybody writes", ErrTooLarge, err, maxChecks))
	}
	for _, finding := range found {
		c.wrong = true
		c.find(o, finding.Path, errors.New(finding.Problem))
	}
	return err
}

// document is where the schema of the kind is, if it is anywhere.
func (c *conformity) document(ctx context.Context, kind schema.GroupVersionKind) (*schema.Document, error) {
	if d := c.defined[kind]; d != nil {
		return d, nil
	}
	api := apiOf{kind.Group, kind.Version}
	if d, asked := c.documents[api]; asked {
		return d, nil
	}
	d, err := c.schemas(ctx, api.group, api.version)
	if err == nil {
		c.documents[api] = d
	}
	return d, err
}

func (c *conformity) find(o *object, path []string, err error) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, &Error{Resource: o.resource.ID().String(), File: o.resource.File, Field: place(path), Err: err})
	}
}

// report makes one error of all findings.
func (c *conformity) report() error {
	switch len(c.findings) {
	case 0:
		return nil
	case 1:
		return c.findings[0]
	}
	texts := make([]string, 0, len(c.findings))
	for _, finding := range c.findings {
		texts = append(texts, finding.Error())
	}
	many := strconv.Itoa(len(texts))
	if len(texts) == maxFindings {
		many = "at least " + many
	}
	return &Error{Err: &findings{text: many + " findings: " + strings.Join(texts, "; "), unknown: !c.wrong}}
}

// findings are several.
type findings struct {
	text    string
	unknown bool
}

// Error names them all.
func (f *findings) Error() string { return f.text }

// Is tells whether nothing but schemas is missing.
func (f *findings) Is(target error) bool { return f.unknown && target == ErrUnknownKind }
