package auth

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
)

// subresourceToken issues tokens of a ServiceAccount.
const subresourceToken = "token"

// account reads the ServiceAccount, nil without a name.
func (s Secrets) account(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	if name == "" {
		return nil, nil
	}
	var found corev1.ServiceAccount
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)
	if apierrors.IsNotFound(err) {
		return nil, failure.Retry(sourcev1.AuthenticationFailedReason, fmt.Errorf(
			"service account '%s/%s' not found; create it, or name another one in %s", namespace, name, fieldServiceAccount))
	}
	if err != nil {
		// An outage of the API server must not push the object's own retries out.
		return nil, failure.Wait(sourcev1.AuthenticationFailedReason, 0,
			fmt.Errorf("read service account '%s/%s': %w", namespace, name, err))
	}
	found.Namespace, found.Name = namespace, name
	return &found, nil
}

// issueToken asks the API server for a token of the account, see the TokenRequest of authentication.k8s.io/v1.
func issueToken(
	ctx context.Context, tokens client.SubResourceClientConstructor, account *corev1.ServiceAccount, audiences []string,
) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	if err := tokens.SubResource(subresourceToken).Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("create a token of the service account: %w", err)
	}
	return request.Status.Token, nil
}
