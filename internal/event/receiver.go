package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/hashicorp/go-retryablehttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxRetryWait bounds the pause between two attempts, whatever the receiver asks for.
	maxRetryWait = 10 * time.Second
	// maxAnswer is read of an answer's body, so that the connection can be used again. Nothing is made of it.
	maxAnswer = 4 << 10
)

// What a receiver that took an event said; the values of the label "answer".
const (
	answerAccepted  = "accepted"
	answerDuplicate = "duplicate"
)

// receiver posts events in the form of event.toolkit.fluxcd.io/v1beta1, as Flux's notification-controller takes them.
type receiver struct {
	address, instance string
	client            *retryablehttp.Client
}

func newReceiver(o Options) (*receiver, error) {
	// The parser's error quotes the address, which may hold a token.
	address, err := url.Parse(o.EventsAddr)
	if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return nil, errors.New("events address: not an http or https URL with a host")
	}
	client := retryablehttp.NewClient()
	if o.HTTPClient != nil {
		plain := *o.HTTPClient
		client.HTTPClient = &plain
	}
	client.HTTPClient.Timeout = o.AttemptTimeout
	// Nothing in the contract redirects, and the news of a cluster are not for whoever an answer names.
	client.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Logger = nil
	client.RetryMax = o.Attempts - 1
	client.RetryWaitMin = o.RetryWait
	client.RetryWaitMax = maxRetryWait
	client.Backoff = backoff
	client.CheckRetry = checkRetry
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return &receiver{address: o.EventsAddr, instance: o.Instance, client: client}, nil
}

// post gives the event to the receiver and returns its answer. It retries when there was no answer or a server's error.
func (r *receiver) post(ctx context.Context, item queued) (string, error) {
	body, err := json.Marshal(r.payload(item))
	if err != nil {
		return "", fmt.Errorf("encode event: %w", err)
	}
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, r.address, body)
	if err != nil {
		return "", errors.New("post event: the address makes no request")
	}
	request.Header.Set("Content-Type", "application/json")

	response, err := r.client.Do(request)
	if response != nil {
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	}
	switch {
	case response == nil && ctx.Err() != nil:
		return "", fmt.Errorf("post event: %w", context.Cause(ctx))
	case response == nil:
		return "", fmt.Errorf("post event: %w", withoutAddress(err))
	case response.StatusCode == http.StatusTooManyRequests:
		return answerDuplicate, nil
	case response.StatusCode >= 200 && response.StatusCode < 300:
		return answerAccepted, nil
	}
	return "", fmt.Errorf("post event: the receiver answered with status %d", response.StatusCode)
}

func (r *receiver) payload(item queued) eventv1.Event {
	severity := eventv1.EventSeverityInfo
	if item.Type == Warning {
		severity = eventv1.EventSeverityError
	}
	return eventv1.Event{
		InvolvedObject:      item.Object,
		Severity:            severity,
		Timestamp:           metav1.NewTime(item.at),
		Message:             item.Message,
		Reason:              item.Reason,
		Metadata:            item.Metadata,
		ReportingController: Reporter(item.Object.GroupVersionKind().Group),
		ReportingInstance:   r.instance,
	}
}

// checkRetry takes 429 for an answer: notification-controller gives it to an event it has already seen.
func checkRetry(ctx context.Context, response *http.Response, err error) (bool, error) {
	if response != nil && response.StatusCode == http.StatusTooManyRequests {
		return false, nil
	}
	return retryablehttp.DefaultRetryPolicy(ctx, response, err)
}

// backoff doubles the pause. It does not ask the response: a Retry-After of an hour would hold a worker for as long.
func backoff(least, most time.Duration, attempt int, _ *http.Response) time.Duration {
	return retryablehttp.DefaultBackoff(least, most, attempt, nil)
}

// withoutAddress takes the address, which may hold a token, out of a client's error.
func withoutAddress(err error) error {
	if located, ok := errors.AsType[*url.Error](err); ok {
		return located.Err
	}
	return err
}
