package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/controllers/packages/lookups"
)

// targetFieldsWait is how long sets wait for the allow list of fields when the process begins.
const targetFieldsWait = 10 * time.Second

// watchTargetFields tells which fields of targets expressions may see: those that a ConfigMap in the controller's own namespace
// names.
func watchTargetFields(mgr ctrl.Manager, options Options, m *metrics, allow func(lookups.Allowed)) error {
	if options.RuntimeNamespace == "" || options.TargetFields == "" {
		allow(nil)
		return nil
	}
	client, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("watch the allow list of target fields: %w", err)
	}
	log := ctrl.Log.WithName("packages").WithValues("configMap", options.RuntimeNamespace+"/"+options.TargetFields)
	var first sync.Once
	read := func(object any) {
		first.Do(func() {})
		var data map[string]string
		if list, ok := object.(*unstructured.Unstructured); ok {
			data, _, _ = unstructured.NestedStringMap(list.Object, "data")
		}
		allowed, problems := lookups.ReadAllowed(data)
		for _, problem := range problems {
			log.Error(problem, "the allow list of target fields has a mistake; the rest of it counts")
		}
		m.mistakes.Set(float64(len(problems)))
		allow(allowed)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		options.RuntimeNamespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", options.TargetFields).String()
		}).Informer()
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: read, UpdateFunc: func(_, now any) { read(now) }, DeleteFunc: func(any) { read(nil) },
	})
	if err != nil {
		return fmt.Errorf("watch the allow list of target fields: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		go func() {
			limited, cancel := context.WithTimeout(ctx, targetFieldsWait)
			defer cancel()
			if !cache.WaitForCacheSync(limited.Done(), handler.HasSynced) && ctx.Err() == nil {
				log.Info("cannot read the allow list of target fields yet; nothing of a target's spec and status is seen")
			}
			first.Do(func() { allow(nil) })
		}()
		informer.RunWithContext(ctx)
		return nil
	}))
}
