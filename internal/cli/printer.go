package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// printerOf is the printer that the flags ask for. With json and yaml it escapes what a terminal would obey; a template's answer
// is what the template makes of the object.
func printerOf(flags *genericclioptions.PrintFlags) (printers.ResourcePrinter, error) {
	format := *flags.OutputFormat
	if format != "json" && format != "yaml" {
		return flags.ToPrinter() //nolint:wrapcheck // It says which formats there are.
	}
	*flags.OutputFormat = "json"
	defer func() { *flags.OutputFormat = format }()
	printer, err := flags.ToPrinter()
	return &harmless{json: printer, yaml: format == "yaml"}, err //nolint:wrapcheck // As above.
}

// manifestPrinter writes objects as YAML.
func manifestPrinter() *harmless { return &harmless{json: &printers.JSONPrinter{}, yaml: true} }

// harmless writes objects with escapes for characters that do not print, so that they are read as what they were.
// YAML of such characters cannot be had from Kubernetes' printers at all.
type harmless struct {
	json    printers.ResourcePrinter
	yaml    bool
	printed bool
}

// PrintObj implements printers.ResourcePrinter.
func (h *harmless) PrintObj(obj runtime.Object, out io.Writer) error {
	var raw bytes.Buffer
	if err := h.json.PrintObj(obj, &raw); err != nil {
		return err //nolint:wrapcheck // unprinted says what was done.
	}
	text := escaped(raw.String(), h.yaml)
	if h.yaml {
		var err error
		if text, err = toYAML(text); err != nil {
			return err
		}
		if h.printed {
			text = "---\n" + text
		}
		h.printed = true
	}
	_, err := io.WriteString(out, text)
	return err //nolint:wrapcheck // unprinted tells a closed pipe apart.
}

// toYAML gives the YAML of JSON. Strings in which something has to be escaped are put into quotes, as there are no escapes elsewhere.
func toYAML(text string) (string, error) {
	raw, err := yaml.JSONToYAML([]byte(text))
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	if !strings.ContainsFunc(string(raw), isHarmful) {
		return string(raw), nil
	}
	var node yamlv3.Node
	if err := yamlv3.Unmarshal(raw, &node); err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	quote(&node)
	var quoted bytes.Buffer
	encoder := yamlv3.NewEncoder(&quoted)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&node); err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return escaped(quoted.String(), true), nil
}

func quote(node *yamlv3.Node) {
	if node.Kind == yamlv3.ScalarNode && strings.ContainsFunc(node.Value, isHarmful) {
		node.Style = yamlv3.DoubleQuotedStyle
	}
	for _, inner := range node.Content {
		quote(inner)
	}
}

// isHarmful says that a character does not print. Those of white space stand between the strings too.
func isHarmful(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// escaped writes such characters of quoted strings as JSON does it, or else YAML: they differ beyond the first 65,536.
func escaped(text string, yaml bool) string {
	if !strings.ContainsFunc(text, isHarmful) {
		return text
	}
	var made strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case !isHarmful(r):
			made.WriteRune(r)
		case high == unicode.ReplacementChar: // It is no pair.
			fmt.Fprintf(&made, `\u%04x`, r)
		case yaml:
			fmt.Fprintf(&made, `\U%08x`, r)
		default:
			fmt.Fprintf(&made, `\u%04x\u%04x`, high, low)
		}
	}
	return made.String()
}
