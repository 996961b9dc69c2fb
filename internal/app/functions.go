package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	controllers "sluice.dev/sluice/controllers/packages"
	"sluice.dev/sluice/internal/extension"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/memory"
)

const (
	// policyKey is the entry of the ConfigMap that says which functions may run.
	policyKey = "functions.yaml"
	// maxModuleBytes bounds the module of one function.
	maxModuleBytes = 16 << 20
)

// functions are those that packages bring. A nil one has none.
type functions struct {
	*extension.Functions

	engine *wasm.Engine
}

// newFunctions makes what runs the functions that packages bring, and what reads which of them may: nil where none may.
func newFunctions(mgr ctrl.Manager, options Options, p parts, plane *controllers.Plane) (*functions, error) {
	if options.FunctionsConfigMap == "" {
		return nil, nil //nolint:nilnil // Nobody's functions are none.
	}
	registries, roots, err := newRegistries(options, p)
	if err != nil {
		return nil, err
	}
	// Half of what there is keeps compiled modules, and the other half is for who compiles or runs one: one at a time.
	half := p.memory.functions / 2
	budget := memory.New(half, fmt.Sprintf("half of --functions-budget=%d", p.memory.functions))
	engine, err := wasm.New(wasm.Options{
		MaxModule: maxModuleBytes, MaxMemory: half / 2, MaxOutput: half / 4, KeptBytes: half, Timeout: options.FunctionsTimeout, Memory: budget,
	})
	if err != nil {
		return nil, err
	}
	made := &functions{engine: engine, Functions: extension.New(extension.Options{
		Client: registries, Credentials: p.credentials, Roots: roots, Namespace: options.RuntimeNamespace,
		Where:  fmt.Sprintf("the ConfigMap %s/%s", options.RuntimeNamespace, options.FunctionsConfigMap),
		Engine: engine, MaxModule: maxModuleBytes, MaxSignatures: options.Limits.OCISignatures, Memory: budget,
		Dir: filepath.Join(os.TempDir(), "sluice-functions"),
	})}
	return made, mgr.Add(&policyWatch{mgr: mgr, options: options, functions: made.Functions, plane: plane})
}

// custom is what the renderer knows of them.
func (f *functions) custom() function.Custom {
	if f == nil {
		return nil
	}
	return f
}

func (f *functions) close() error {
	if f == nil {
		return nil
	}
	return f.engine.Close()
}

// policyWatch keeps what is allowed as the ConfigMap says, and has variants looked at that wait for it.
type policyWatch struct {
	mgr       ctrl.Manager
	options   Options
	functions *extension.Functions
	plane     *controllers.Plane
}

// Start implements manager.Runnable.
func (w *policyWatch) Start(ctx context.Context) error {
	client, err := typedcorev1.NewForConfig(w.mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.options.FunctionsConfigMap, err)
	}
	only := fields.OneTermEqualSelector("metadata.name", w.options.FunctionsConfigMap)
	list := cache.NewListWatchFromClient(client.RESTClient(), "configmaps", w.options.RuntimeNamespace, only)
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: list, ObjectType: &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { w.read(ctx, obj) },
			UpdateFunc: func(_, obj any) { w.read(ctx, obj) },
			DeleteFunc: func(any) { w.read(ctx, nil) },
		},
	})
	go func() {
		// Where there is no ConfigMap, nobody tells.
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) && w.functions.Fingerprint() == "" {
			w.read(ctx, nil)
		}
	}()
	informer.RunWithContext(ctx)
	return nil
}

// read takes over what the ConfigMap says; nothing is allowed where there is none.
func (w *policyWatch) read(ctx context.Context, obj any) {
	text := ""
	if found, ok := obj.(*corev1.ConfigMap); ok {
		text = found.Data[policyKey]
	}
	log := ctrl.Log.WithName("packages").WithValues("configMap", w.options.FunctionsConfigMap)
	if err := w.functions.Allow(text); err != nil {
		log.Error(err, "no function that packages bring may run: the ConfigMap cannot be read")
	} else {
		log.Info("read which functions packages may bring")
	}
	if err := w.plane.FunctionsChanged(ctx, w.mgr.GetClient()); err != nil {
		log.Error(err, "cannot have variants looked at again")
	}
}
