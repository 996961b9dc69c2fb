package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// answerVersion is the apiVersion of what commands say that is no object of the cluster.
const answerVersion = "cli.sluice.dev/v1alpha1"

// answers shows what a command found: as text, or as an object for programs.
type answers struct{ output *genericclioptions.PrintFlags }

// bindAnswers adds the flags that choose between them.
func bindAnswers(command *cobra.Command) answers {
	flags := genericclioptions.NewPrintFlags("")
	flags.NamePrintFlags = nil
	flags.AddFlags(command)
	bindColor(command)
	command.Flags().Lookup("output").Usage = "Output format. One of: (wide, " + list(flags.AllowedFormats()) + ")."
	return answers{flags}
}

// wide says that text is to be shown whole.
func (a answers) wide() bool { return *a.output.OutputFormat == "wide" }

// show writes the answer, which becomes an object of the kind unless text is asked for.
func (a answers) show(out io.Writer, kind string, answer any, text func(table) error) error {
	if isText(a.output) {
		return unprinted(text(newTable(out, a.wide())))
	}
	printer, err := printerOf(a.output)
	if err != nil {
		return usage(err.Error())
	}
	whole := reflect.New(reflect.TypeOf(answer))
	whole.Elem().Set(reflect.ValueOf(answer))
	listed(whole)
	raw, err := json.Marshal(whole.Interface())
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	obj := unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &obj.Object); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	obj.SetAPIVersion(answerVersion)
	obj.SetKind(kind)
	return unprinted(printer.PrintObj(&obj, out))
}

// listed makes lists of which nothing was put into empty ones: programs find a list wherever there may be one.
func listed(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			listed(value.Elem())
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Field(i); field.CanSet() {
				listed(field)
			}
		}
	case reflect.Map:
		if value.IsNil() {
			value.Set(reflect.MakeMap(value.Type()))
		}
	case reflect.Slice:
		if value.IsNil() {
			value.Set(reflect.MakeSlice(value.Type(), 0, 0))
		}
		for i := range value.Len() {
			listed(value.Index(i))
		}
	default:
	}
}

// isText says that no output for programs is asked for.
func isText(flags *genericclioptions.PrintFlags) bool {
	format := *flags.OutputFormat
	return format == "wide" || format == "" && *flags.TemplatePrinterFlags.TemplateArgument == ""
}

// unprinted is why an answer that was found could not be shown. Whoever closes a pipe has seen enough, and is told nothing.
func unprinted(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE):
		return &CommandError{Code: ExitUnanswered}
	}
	return &CommandError{Code: ExitUnanswered, What: "print", Why: err.Error()}
}
