package testenv

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// auditPolicy has the API server write down who asked for what, without the bodies, once each request is answered; of a
// watch also when it was opened.
const auditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],"omitManagedFields":true,"rules":[{"level":"Metadata"}]}`

// Request is a request to the API server as its audit log has it.
type Request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	URI   string `json:"requestURI"`
	User  struct {
		Name string `json:"username"`
	} `json:"user"`
	// As is whom the user impersonated; nil for nobody.
	As *struct {
		Name string `json:"username"`
	} `json:"impersonatedUser"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Group       string `json:"apiGroup"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Impersonated is as whom the request was made; empty for the user itself.
func (r Request) Impersonated() string {
	if r.As == nil {
		return ""
	}
	return r.As.Name
}

// audit has the API server keep an audit log in the environment's folder.
func (e *Env) audit(server *envtest.APIServer) error {
	policy := filepath.Join(e.dir, "audit-policy.json")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	e.auditLog = filepath.Join(e.dir, "audit.log")
	server.Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", e.auditLog).
		Set("audit-log-maxsize", "4096")
	return nil
}

// Requests are all requests so far of the users with this name, in the order in which they were answered. The
// environment has to be started with Options.Audit.
func (e *Env) Requests(user string) ([]Request, error) {
	file, err := os.Open(e.auditLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	var found []Request
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			// What is being written now is answered later.
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if !strings.Contains(line, `"username":"`+user+`"`) {
			continue
		}
		var request Request
		if err := json.Unmarshal([]byte(line), &request); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if request.User.Name == user {
			found = append(found, request)
		}
	}
}

// KubeconfigAs writes a kubeconfig of a user with this name in these groups, and returns its path. Beside what is granted
// to the name and the groups, and to all who are authenticated, the user has no rights.
func (e *Env) KubeconfigAs(name string, groups ...string) (string, error) {
	e.users.Lock()
	defer e.users.Unlock()
	user, err := e.plane.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return "", fmt.Errorf("add the user %s: %w", name, err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return "", fmt.Errorf("make a kubeconfig for %s: %w", name, err)
	}
	// KUBECONFIG is a list with colons, which the names of ServiceAccounts have too.
	path := filepath.Join(e.dir, "kubeconfig-"+strings.ReplaceAll(name, ":", "-"))
	return path, os.WriteFile(path, kubeconfig, 0o600)
}
