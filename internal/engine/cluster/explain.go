package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/transport"
)

// explain turns what the client libraries say into this package's errors. What an answer looks like is nowhere
// specified; tests hold it against a real API server.
func (c *Client) explain(verb string, ref Ref, err error) error {
	answered, ok := errors.AsType[*apierrors.StatusError](err)
	if errors.Is(err, context.DeadlineExceeded) {
		return c.answer(ErrUnavailable, verb, ref, "the API server, or a webhook that it asks, does not answer in time", err)
	}
	if !ok {
		return c.answer(ErrUnavailable, verb, ref, transport.SafeError(err).Error(), err)
	}
	status := answered.Status()
	switch status.Code {
	case http.StatusConflict:
		// A webhook may choose the code of its refusal.
		if !refusal.MatchString(status.Message) {
			return c.conflict(verb, ref, &status)
		}
	case http.StatusUnprocessableEntity:
		switch fields := immutable(&status); {
		case slices.Equal(fields, []string{"metadata.uid"}):
			return c.answer(ErrChanged, verb, ref, "it is another object of that name", nil)
		case len(fields) > 0:
			return c.answer(ErrImmutable, verb, ref, "it cannot be changed in place: "+printable.List(fields, maxShown), nil)
		}
	case http.StatusNotFound:
		if apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			// Not the object is missing but the path: the kind was there when the API server was last asked.
			c.mapper.doubt()
			return c.answer(ErrNoKind, verb, ref, "the API server no longer serves "+ref.GVK.GroupKind().String()+" in version "+ref.GVK.Version, err)
		}
	}
	reason := reasonOf(answered, ref)
	return c.answer(reason, verb, ref, c.words(reason, &status, ref), err)
}

func (c *Client) answer(reason error, verb string, ref Ref, detail string, cause error) error {
	seconds, _ := apierrors.SuggestsClientDelay(cause)
	if _, answered := errors.AsType[*apierrors.StatusError](cause); answered {
		// What the API server said has been read; unwrapped it could show what the detail leaves out.
		cause = nil
	}
	return &AnswerError{Reason: reason, Verb: verb, Ref: ref, Detail: detail, After: time.Duration(seconds) * time.Second, cause: transport.SafeError(cause)}
}

func (c *Client) conflict(verb string, ref Ref, status *metav1.Status) error {
	if status.Reason == metav1.StatusReasonAlreadyExists {
		return c.answer(ErrExists, verb, ref, "it exists already", nil)
	}
	conflict := &ConflictError{Ref: ref}
	for _, cause := range causes(status) {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		field := Field{Path: transport.Printable(cause.Field), Manager: managerOf(cause.Message)}
		if cause.Field == ".metadata.labels."+PartOf {
			conflict.Owner = field.Manager
		}
		conflict.Fields = append(conflict.Fields, field)
	}
	if len(conflict.Fields) == 0 {
		return c.answer(ErrChanged, verb, ref, transport.Printable(status.Message), nil)
	}
	return conflict
}

// conflicting is how the API server names the manager of a field: conflict with "kubectl" using v1 at ….
var conflicting = regexp.MustCompile(`^conflict with "([^"]*)"`)

func managerOf(message string) string {
	if found := conflicting.FindStringSubmatch(message); found != nil {
		return transport.Printable(found[1])
	}
	return transport.Printable(message)
}

// unchangeable are the words for a field that cannot change, in the API server's validation and in the rules of CRDs.
var unchangeable = regexp.MustCompile(
	`immutable|may not change (?:once set|fields)|(?:may not|cannot) be (?:changed|updated|modified)|can not be changed|cannot change roleRef|updates to`)

// immutable lists the fields that cannot change, if that is all that is wrong: making an object anew that is invalid in
// another way would lose it.
func immutable(status *metav1.Status) []string {
	var fields []string
	for _, cause := range causes(status) {
		// A policy's refusal names no field, whatever its words are.
		if cause.Field == "" || !unchangeable.MatchString(cause.Message) {
			return nil
		}
		fields = append(fields, transport.Printable(cause.Field))
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func reasonOf(answered *apierrors.StatusError, ref Ref) error {
	status, message := answered.Status(), answered.ErrStatus.Message
	switch {
	case absent.MatchString(message):
		return ErrWebhook
	case refusal.MatchString(message):
		return ErrDenied
	case apierrors.HasStatusCause(answered, corev1.NamespaceTerminatingCause):
		return ErrNamespaceTerminating
	case misfit.MatchString(message):
		return ErrInvalid
	}
	switch status.Code {
	case http.StatusForbidden:
		if lacking.MatchString(message) || strings.Contains(message, escalating) {
			return ErrForbidden
		}
		return ErrDenied
	case http.StatusNotFound:
		if status.Details != nil && status.Details.Kind == "namespaces" && ref.GVK.Kind != "Namespace" {
			return ErrNamespaceMissing
		}
		return ErrNotFound
	case http.StatusUnauthorized:
		return ErrForbidden
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return ErrInvalid
	}
	return ErrUnavailable
}

var (
	// absent is how the API server names a webhook that does not answer.
	absent = regexp.MustCompile(`failed calling webhook|conversion webhook for `)
	// refusal is how it says that a webhook or an admission policy has refused the request.
	refusal = regexp.MustCompile(`denied (?:the )?request`)
	// misfit is its answer, 500 without a reason, for a field or a value that the kind's schema does not have.
	misfit = regexp.MustCompile(`failed to create typed patch object|failed to convert new object`)
	// lacking is how it names a missing right.
	lacking = regexp.MustCompile(`User "[^"]*" cannot (\S+) resource "([^"]+)"(?: in API group "([^"]*)")?( in the namespace "[^"]*")?`)
)

// escalating is how the API server names rights that somebody hands on without having them.
const escalating = "attempting to grant RBAC permissions not currently held"

// words are the answer in words.
func (c *Client) words(reason error, status *metav1.Status, ref Ref) string {
	switch {
	case errors.Is(reason, ErrNotFound):
		return "not found"
	case errors.Is(reason, ErrNamespaceMissing):
		return "the namespace " + ref.Namespace + " does not exist"
	case errors.Is(reason, ErrNamespaceTerminating):
		return "the namespace " + ref.Namespace + " is being deleted"
	case errors.Is(reason, ErrForbidden):
		if found := lacking.FindStringSubmatch(status.Message); found != nil {
			return c.forbidden(found[1], found[2], found[3], found[4] != "", ref)
		}
		if at := strings.Index(status.Message, escalating); at >= 0 {
			return c.identity.String() + " is " + transport.Printable(status.Message[at:])
		}
	case errors.Is(reason, ErrInvalid) && len(causes(status)) > 0:
		return firstOf(causes(status), func(cause metav1.StatusCause) string {
			return transport.Printable(strings.TrimPrefix(cause.Field+": ", ": ") + discreet(ref, cause.Message))
		})
	}
	return transport.Printable(discreet(ref, status.Message))
}

func (c *Client) forbidden(verb, resource, group string, namespaced bool, ref Ref) string {
	if group != "" {
		resource += "." + group
	}
	// Newer API servers ask for impersonate-on:… first, and say that it is missing when both are.
	if strings.HasPrefix(verb, "impersonate") {
		return fmt.Sprintf("the controller may not impersonate %s: grant it the verb impersonate on serviceaccounts", c.identity)
	}
	where, remedy := "", "a ClusterRole and a ClusterRoleBinding"
	if namespaced {
		where, remedy = " in namespace "+ref.Namespace, "a Role and a RoleBinding"
	}
	text := fmt.Sprintf("%s may not %s %s%s: grant it with %s", c.identity, verb, transport.Printable(resource), where, remedy)
	if c.identity != (Identity{}) {
		text += ", or name another ServiceAccount"
	}
	return text
}

var (
	// scalar is a value that the API server repeats in its refusal, and that can be told from the words after it.
	scalar = regexp.MustCompile(`((?:Invalid|Unsupported|Duplicate) value|Not found): (?:"(?:[^"\\]|\\.)*"|-?[0-9.]+|true|false|null)`)
	// quoted is any other value that it repeats, with all that follows.
	quoted = regexp.MustCompile(`(?s)((?:Invalid|Unsupported|Duplicate) value: |Not found: |got &?value\.|Value:|unrecognized (?:type|value): ).*`)
)

// discreet cuts the values that an answer repeats: objects of any kind may hold what came from a Secret. Of what is said
// about a Secret itself, the words behind a value go too.
func discreet(ref Ref, message string) string {
	if ref.GVK.Kind != "Secret" {
		message = scalar.ReplaceAllString(message, "$1 …")
	}
	return quoted.ReplaceAllString(message, "…")
}

func causes(status *metav1.Status) []metav1.StatusCause {
	if status.Details == nil {
		return nil
	}
	return status.Details.Causes
}
