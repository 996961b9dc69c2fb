package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"sluice.dev/sluice/internal/ui"
)

// login is the person whose bearer token it is. All that they see and do is asked for with it, and with nothing of the process's own.
func (b *base) login(ctx context.Context, token string) (*ui.Person, error) {
	theirs := rest.AnonymousClientConfig(b.rest)
	theirs.BearerToken = token
	// Pages bound what is asked for, and the API server is fair to people by itself.
	theirs.QPS, theirs.WarningHandler = -1, rest.NoWarnings{}
	theirs.Wrap(func(next http.RoundTripper) http.RoundTripper { return accountant{next} })
	session, err := connect(theirs, b.scheme, b.RESTMapper())
	if err != nil {
		return nil, err
	}
	who, err := session.identity(ctx)
	if err != nil {
		told := explain("log in", err, "system:basic-user")
		if told.unknown {
			told.Help = []string{"take a token that the API server takes, such as kubectl create token prints"}
			return nil, &ui.LoginError{What: told.Error()}
		}
		return nil, told
	}
	if who.Username == "" || who.Username == anonymous || slices.Contains(who.Groups, unauthenticated) {
		return nil, &ui.LoginError{What: "log in: the API server takes the token for nobody's"}
	}
	config := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(func(*rest.Config) *rest.Config { return theirs })
	person := &sight{base: &base{IOStreams: b.IOStreams, session: session, scheme: b.scheme, config: config}}
	return &ui.Person{Name: who.Username, Reader: person, Rights: person}, nil
}

// accountant says how much the API server answers with. What a Service says goes to a file, and what is watched is not kept.
type accountant struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a accountant) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(r)
	if err == nil && path.Base(r.URL.Path) == "selfsubjectrulesreviews" {
		response.Body = http.MaxBytesReader(nil, response.Body, maxRules)
	}
	if err == nil && !r.URL.Query().Has("watch") && !proxied.MatchString(r.URL.Path) {
		response.Body = &accounted{ReadCloser: response.Body, ctx: r.Context()}
	}
	return response, err //nolint:wrapcheck // It is the transport's own.
}

// proxied is where the API server hands on what a Service says.
var proxied = regexp.MustCompile(`/namespaces/[^/]+/services/[^/]+/proxy/`)

type accounted struct {
	io.ReadCloser

	ctx  context.Context //nolint:containedctx // It is the request's.
	size int
}

// Read implements io.Reader.
func (a *accounted) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	weight := weigh(p[:n])
	a.size += weight
	if much := ui.Answered(a.ctx, weight); much != nil {
		return n, much //nolint:wrapcheck // It is for people.
	}
	return n, err //nolint:wrapcheck // It may be io.EOF.
}

// weigh is how much of an answer that is, as memory goes: there, what usual objects have is a few times as large, and what has little else
// than brackets and commas is far more.
func weigh(text []byte) int {
	const aMap, aList, anItem, usual = 350, 80, 32, 6
	parsed := len(text) + aMap*bytes.Count(text, []byte("{")) + aList*bytes.Count(text, []byte("[")) + anItem*bytes.Count(text, []byte(","))
	return max(len(text), parsed/usual)
}

// Close implements io.Closer. What is not kept is gone by the next chunk.
func (a *accounted) Close() error {
	if a.ctx.Value(keptKey{}) == nil {
		_ = ui.Answered(a.ctx, -a.size) // It says that there is too much, once there was.
	}
	a.size = 0
	return a.ReadCloser.Close() //nolint:wrapcheck // It is the body's own.
}

// maxRules is how many bytes of rules of a namespace are read, which whoever may bind roles there may make for everybody.
const maxRules = 1 << 20

// keptKey is in the contexts of requests of which the answers are kept, as all chunks of a list.
type keptKey struct{}

// kept is for such requests.
func kept(ctx context.Context) context.Context { return context.WithValue(ctx, keptKey{}, true) }

// Whom the API server takes for nobody.
const anonymous, unauthenticated = "system:anonymous", "system:unauthenticated"

// identity is who the API server knows the session's user as.
func (s *session) identity(ctx context.Context) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := s.Create(ctx, review)
	return review.Status.UserInfo, err
}

// Everywhere implements ui.Rights.
func (s *sight) Everywhere(ctx context.Context, of ui.Kind) (bool, error) {
	return s.lists(ctx, of, "")
}

// In implements ui.Rights. The API server gives all rules of a namespace at once, but for those of authorizers that have no rules. Such
// a one may also refuse what the rules of others allow, so that each kind is asked for by itself then, as it is where there are too many.
func (s *sight) In(ctx context.Context, namespace string, of []ui.Kind) ([]bool, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	err := s.Create(ctx, review)
	_, isTooMuch := errors.AsType[*http.MaxBytesError](err)
	if err != nil && !isTooMuch {
		return nil, unreviewed(err)
	}
	may := make([]bool, len(of))
	for i, k := range of {
		if err == nil && !review.Status.Incomplete {
			may[i] = slices.ContainsFunc(review.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool { return listedBy(rule, k) })
			continue
		}
		allowed, failed := s.lists(ctx, k, namespace)
		if failed != nil {
			return nil, failed
		}
		may[i] = allowed
	}
	return may, nil
}

// may says whether the API server allows the session's user to do this.
func (s *session) may(ctx context.Context, do authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &do}}
	err := s.Create(ctx, review)
	return review.Status.Allowed, err
}

// lists says whether the person may list the kind's objects in a namespace, or in all.
func (s *sight) lists(ctx context.Context, of ui.Kind, namespace string) (bool, error) {
	may, err := s.may(ctx, authorizationv1.ResourceAttributes{Group: of.Group, Resource: of.Resource, Verb: "list", Namespace: namespace})
	if err != nil {
		return false, unreviewed(err)
	}
	return may, nil
}

// listedBy says that a rule lets all of the kind's objects be listed, as RBAC has it.
func listedBy(rule authorizationv1.ResourceRule, of ui.Kind) bool {
	names := func(all []string, one string) bool { return slices.Contains(all, "*") || slices.Contains(all, one) }
	return names(rule.Verbs, "list") && names(rule.APIGroups, of.Group) && names(rule.Resources, of.Resource) && len(rule.ResourceNames) == 0
}

// unreviewed says why there was no answer about rights.
func unreviewed(err error) error {
	told := explain("review your rights", err, "system:basic-user")
	if told.unknown {
		return &ui.LoginError{What: told.Error()}
	}
	return told
}
