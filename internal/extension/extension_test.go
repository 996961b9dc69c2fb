package extension_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/extension/extensiontest"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/kpt/wasm/wasmtest"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// call runs the image's function once.
func call(ctx context.Context, w *extensiontest.World, image, input string) (output string, err error) {
	err = w.Run(ctx, function.Call{Image: image, Input: []byte(input), Output: func(_ context.Context, written []byte) error {
		output = string(written)
		return nil
	}})
	return output, err
}

func allow(t *testing.T, w *extensiontest.World, policy string) {
	t.Helper()
	if err := w.Allow(policy); err != nil {
		t.Fatal(err)
	}
}

func TestASignedFunctionRuns(t *testing.T) {
	t.Parallel()
	w := extensiontest.New(t, wasm.Options{})
	image := w.PublishSigned(t, "functions/shout", wasmtest.Replace('?', '!'))
	allow(t, w, w.Policy(t, "functions/*"))
	for range 2 {
		output, err := call(t.Context(), w, image, "what?")
		if err != nil || output != "what!" {
			t.Fatal(output, err)
		}
	}
}

func TestWhatIsKeptNeedsNoRegistry(t *testing.T) {
	t.Parallel()
	w := extensiontest.New(t, wasm.Options{})
	image := w.PublishSigned(t, "functions/shout", wasmtest.Replace('?', '!'))
	allow(t, w, w.Policy(t, "functions/shout"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if output, err := call(t.Context(), w, image, "?"); err != nil || output != "!" {
				t.Error(output, err)
			}
		})
	}
	all.Wait()
	asked := len(w.Registry.Requests())
	if manifests := w.Registry.Count(registry.ManifestGET); manifests > 4 {
		t.Errorf("four at once asked for %d manifests", manifests)
	}
	w.Restart(t)
	allow(t, w, w.Policy(t, "functions/shout"))
	if output, err := call(t.Context(), w, image, "?"); err != nil || output != "!" {
		t.Error(output, err)
	}
	if now := len(w.Registry.Requests()); now != asked {
		t.Errorf("%d requests were made for what is kept", now-asked)
	}
	// Whom the policy trusts is part of what is known of it.
	w.Key = verifytest.NewKey(t)
	allow(t, w, w.Policy(t, "functions/shout"))
	if _, err := call(t.Context(), w, image, "?"); !errors.Is(err, function.ErrUntrusted) {
		t.Error(err)
	}
}

func TestWhatIsDamagedOnDiskIsFetchedAnew(t *testing.T) {
	t.Parallel()
	w := extensiontest.New(t, wasm.Options{})
	image := w.PublishSigned(t, "functions/shout", wasmtest.Replace('?', '!'))
	allow(t, w, w.Policy(t, "functions/shout"))
	if _, err := call(t.Context(), w, image, "?"); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(w.Dir)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	name := filepath.Join(w.Dir, files[0].Name())
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-3] ^= 1
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Restart(t)
	allow(t, w, w.Policy(t, "functions/shout"))
	if _, err := call(t.Context(), w, image, "?"); !errors.Is(err, function.ErrUnavailable) || !strings.Contains(err.Error(), "is damaged") {
		t.Error(err)
	}
	if output, err := call(t.Context(), w, image, "?"); err != nil || output != "!" {
		t.Error(output, err)
	}
}

func TestWhoMayRunIsTheOperatorsDecision(t *testing.T) {
	t.Parallel()
	w := extensiontest.New(t, wasm.Options{})
	signed := w.PublishSigned(t, "functions/shout", wasmtest.Replace('?', '!'))
	if _, err := call(t.Context(), w, signed, ""); !errors.Is(err, function.ErrUnavailable) {
		t.Errorf("before the policy is known, nobody knows: %v", err)
	}
	host, _, _ := strings.Cut(signed, "/")
	unsigned := w.Publish("functions/quiet", wasmtest.Write("quiet"))
	forged := w.Publish("functions/forged", wasmtest.Write("forged"))
	_, pinned, _ := strings.Cut(forged, "@")
	w.Sign(t, "functions/forged", digest.Digest(pinned), verifytest.NewKey(t))
	gone := signed[:len(signed)-64] + strings.Repeat("0", 64)
	notModule := w.Registry.Repository("functions/flux").PushFlux("", map[string]string{"a": "b"}, nil)
	w.Sign(t, "functions/flux", notModule.Digest, w.Key)
	for name, c := range map[string]struct {
		reason        string
		policy, image string
		is            error
		says          string
	}{
		"nobody":     {"Without a policy nothing runs.", "", signed, function.ErrUnknownFunction, "operators have to allow " + host + "/functions/shout in the ConfigMap"},
		"others":     {"A repository is allowed, and not what begins like it.", w.Policy(t, "functions/sh"), signed, function.ErrUnknownFunction, "operators have to allow"},
		"other path": {"What is beneath is allowed, and nothing beside.", w.Policy(t, "functio/*"), signed, function.ErrUnknownFunction, "operators have to allow"},
		"unsigned":   {"Nobody signed it.", w.Policy(t, "functions/*"), unsigned, function.ErrUntrusted, "no signature found: sign the artifact"},
		"forged":     {"Somebody else signed it.", w.Policy(t, "functions/*"), forged, function.ErrUntrusted, "none of 1 signatures is by a trusted signer"},
		"gone":       {"It may be there the next time.", w.Policy(t, "functions/*"), gone, function.ErrUnavailable, "not found"},
		"no module":  {"What is signed is no module.", w.Policy(t, "functions/*"), host + "/functions/flux@" + notModule.Digest.String(), wasm.ErrModule, "0 layers of WebAssembly"},
		"no yaml":    {"A policy that cannot be read allows nothing.", "functions: [", signed, function.ErrUnknownFunction, "the ConfigMap sluice-system/functions: "},
		"misspelt":   {"A field that is not known may have meant less.", strings.Replace(w.Policy(t, "*"), "verify", "verfy", 1), signed, function.ErrUnknownFunction, "verfy"},
		"no signer":  {"Nobody is asked to sign.", "functions: [{repository: " + host + "/functions/*}]", signed, function.ErrUnknownFunction, "functions[0]: verify: either keys or matchOIDCIdentity"},
		"no key":     {"The key is none.", "functions: [{repository: " + host + "/functions/*, verify: {keys: {a: b}}}]", signed, function.ErrUnknownFunction, "it is not PEM"},
		"all":        {"All registries are nobody's.", "functions: [{repository: '*', verify: {keys: {a: b}}}]", signed, function.ErrUnknownFunction, "has to be as registry.example.com"},
		"pattern":    {"Only whole names are left out.", "functions: [{repository: " + host + "/functions/s*, verify: {keys: {a: b}}}]", signed, function.ErrUnknownFunction, "has to be as registry.example.com"},
		"not a name": {"The image is none.", w.Policy(t, "functions/*"), strings.Replace(signed, "/functions", "/UP", 1), function.ErrUnknownFunction, "repository name is not lower-case"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *w
			own.Dir = t.TempDir()
			own.Restart(t)
			_ = own.Allow(c.policy) // What is wrong with it, the function's error says as well.
			if _, err := call(t.Context(), &own, c.image, ""); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s\n%v", c.reason, err)
			}
		})
	}
}

func TestWhatIsSignedLaterRunsThen(t *testing.T) {
	t.Parallel()
	w := extensiontest.New(t, wasm.Options{})
	image := w.Publish("functions/late", wasmtest.Write("late"))
	allow(t, w, w.Policy(t, "functions/*"))
	if _, err := call(t.Context(), w, image, ""); !errors.Is(err, function.ErrUntrusted) {
		t.Fatal(err)
	}
	_, pinned, _ := strings.Cut(image, "@")
	w.Sign(t, "functions/late", digest.Digest(pinned), w.Key)
	if output, err := call(t.Context(), w, image, ""); err != nil || output != "late" {
		t.Error(output, err)
	}
}

func TestARegistryThatFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := extensiontest.New(t, wasm.Options{})
	image := w.PublishSigned(t, "functions/shout", wasmtest.Replace('?', '!'))
	allow(t, w, w.Policy(t, "functions/*"))
	for name, fault := range map[string]registry.Fault{
		"manifest": registry.Status(500).On(registry.ManifestGET), "blob": registry.Status(503).On(registry.Blob), "cut": registry.Cut(20).On(registry.Blob),
	} {
		w.Registry.Always(fault)
		if _, err := call(t.Context(), w, image, ""); !errors.Is(err, function.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		w.Registry.Heal()
	}
	if output, err := call(t.Context(), w, image, "?"); err != nil || output != "!" {
		t.Error(output, err)
	}
	files, err := os.ReadDir(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(1, len(files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestAFunctionThatLoopsIsLate(t *testing.T) {
	t.Parallel()
	w := extensiontest.New(t, wasm.Options{Timeout: 50 * time.Millisecond})
	image := w.PublishSigned(t, "functions/loop", wasmtest.Loop())
	allow(t, w, w.Policy(t, "functions/*"))
	if _, err := call(t.Context(), w, image, ""); !errors.Is(err, function.ErrTimeout) || !strings.Contains(err.Error(), "more than 50ms") {
		t.Error(err)
	}
}
