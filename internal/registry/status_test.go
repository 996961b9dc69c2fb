package registry

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	date := func(after time.Duration) string { return now.Add(after).Format(http.TimeFormat) }
	const page = `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"no \u001b[31mmanifest\u0007"}]}`
	for reason, test := range map[string]struct {
		status                        int
		retryAfter, contentType, body string
		after                         time.Duration
		is                            error
		says                          string
	}{
		"seconds":                          {429, "17", "text/plain", "slow down", 17 * time.Second, nil, `429 Too Many Requests: "slow down"`},
		"a date":                           {429, date(90 * time.Second), "", "", 90 * time.Second, nil, "too many requests"},
		"a date in the past":               {503, date(-time.Minute), "", "", 0, nil, "503"},
		"a day":                            {503, "86400", "", "", time.Hour, nil, "503"},
		"a far date":                       {503, date(100 * time.Hour), "", "", time.Hour, nil, "503"},
		"beyond all numbers":               {503, "99999999999999999999", "", "", 0, nil, "503"},
		"a negative number":                {503, "-5", "", "", 0, nil, "503"},
		"nonsense":                         {503, "soon", "", "", 0, nil, "503"},
		"nothing said":                     {500, "", "", "", 0, nil, "500 Internal Server Error"},
		"the registry's words":             {404, "", "application/json", page, 0, ErrNotFound, `MANIFEST_UNKNOWN "no \x1b[31mmanifest\a": the repository has no such tag or digest: check spec.ref`},
		"an unknown name":                  {404, "", "application/json; charset=utf-8", strings.Replace(page, "MANIFEST", "NAME", 1), 0, ErrNotFound, "check spec.url"},
		"an unknown blob":                  {404, "", "application/json", strings.Replace(page, "MANIFEST", "BLOB", 1), 0, ErrNotFound, "push the artifact again"},
		"gone":                             {410, "", "", "", 0, ErrNotFound, "410"},
		"a web page":                       {404, "", "text/html; charset=utf-8", "<html>", 0, ErrNotFound, "web page"},
		"forbidden":                        {403, "", "", "", 0, ErrAuthentication, "spec.secretRef"},
		"unauthorized without a challenge": {401, "", "", "", 0, ErrAuthentication, "spec.secretRef"},
		"the password reflected":           {400, "", "text/plain", "you said " + password, 0, nil, "[redacted]"},
		"endless words":                    {400, "", "text/plain", strings.Repeat("a", 1<<20), 0, nil, "…"},
		"endless codes":                    {400, "", "application/json", `{"errors":[{"code":"` + strings.Repeat("A", 9000) + `"}]}`, 0, nil, "AAAA"},
		"a redirect to nowhere":            {302, "", "", "", 0, nil, "302"},
		"no content":                       {204, "", "", "", 0, nil, "204"},
		"a part not asked for":             {206, "", "", "", 0, nil, "206"},
	} {
		r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", test.retryAfter)
			w.Header().Set("Content-Type", test.contentType)
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
		})
		client, seen := newClient(t, func(o *Options) { o.Clock = clocktesting.NewFakePassiveClock(now) })
		_, err := client.Blob(t.Context(), r, blobDescriptor([]byte("x")))
		mustNotLeak(t, err)
		status, ok := errors.AsType[*StatusError](err)
		if !ok {
			// A redirect without a target is net/http's to refuse.
			if test.status != http.StatusFound || err == nil {
				t.Errorf("%s: %v", reason, err)
			}
			continue
		}
		if status.Status != test.status || status.RetryAfter != test.after {
			t.Errorf("%s: %d after %s", reason, status.Status, status.RetryAfter)
		}
		if test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", reason, err)
		}
		if !strings.Contains(err.Error(), r.Host+"/"+name) || len(err.Error()) > 1100 {
			t.Errorf("%s: the error does not name the repository, or is long: %v", reason, err)
		}
		if seen.count("") != 1 {
			t.Errorf("%s: %d requests", reason, seen.count(""))
		}
	}
}

func TestTokenServersErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		status      int
		contentType string
		body        string
		is          error
		after       time.Duration
	}{
		"busy":      {429, "text/plain", "later", nil, 30 * time.Second},
		"refused":   {401, "application/json", `{"details":"incorrect username or password"}`, ErrAuthentication, 30 * time.Second},
		"missing":   {404, "text/plain", "", nil, 30 * time.Second},
		"a page":    {200, "text/html", "<html>", ErrProtocol, 0},
		"no token":  {200, "application/json", "{}", nil, 0},
		"no JSON":   {200, "application/json", "{", nil, 0},
		"too large": {200, "application/json", `{"token":"` + strings.Repeat("a", maxTokenAnswer), nil, 0},
	} {
		r := serve(t, func(w http.ResponseWriter, request *http.Request) {
			if request.URL.Path == "/token" {
				w.Header().Set("Retry-After", "30")
				respond(w, test.status, test.contentType, test.body)
				return
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+request.Host+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		})
		client, seen := newClient(t, nil)
		_, err := client.Resolve(t.Context(), r, "v1")
		if err == nil || errors.Is(err, ErrNotFound) || test.is != nil && !errors.Is(err, test.is) || seen.count("") != 2 {
			t.Errorf("%s: %v after %d requests", reason, err, seen.count(""))
		}
		mustNotLeak(t, err)
		status, ok := errors.AsType[*StatusError](err)
		if ok != (test.status != 200) || ok && status.RetryAfter != test.after {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
