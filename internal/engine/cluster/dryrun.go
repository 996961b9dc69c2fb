package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// DryRun is the client for whoever wants to know what the API server would answer: its writes are authorised, admitted
// and checked like any, and none is stored. The answer's version is that of what is stored still.
func (c *Client) DryRun() *Client {
	rehearsing := *c
	rehearsing.dryRun = true
	return &rehearsing
}

// Rehearses says that nothing which the client writes is stored.
func (c *Client) Rehearses() bool { return c.dryRun || c.foresight != nil }

// write is a request that changes something, unless the client only rehearses it.
func (c *Client) write(request *rest.Request) *rest.Request {
	if c.dryRun {
		return request.Param("dryRun", metav1.DryRunAll)
	}
	return request
}
