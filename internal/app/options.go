package app

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/internal/helm/chart"
	helmsource "sluice.dev/sluice/internal/source/helmrepository"
)

// Options are the settings of the manager. Every one is a flag; names, defaults and environment variables are those
// of Flux's source-controller where it has the setting too.
type Options struct {
	// Controllers are the planes that run; while it is empty, those that are served.
	Controllers []string
	// Generators says whether to work for ArtifactGenerators, where the API server serves them.
	Generators   bool
	FeatureGates map[string]string

	MetricsAddr string
	HealthAddr  string
	PprofAddr   string
	EventsAddr  string

	StoragePath    string
	StorageAddr    string
	StorageAdvAddr string

	RetentionTTL     time.Duration
	RetentionRecords int
	DigestAlgorithm  string
	ScrubInterval    time.Duration

	Concurrent        int
	RequeueDependency time.Duration
	MaxTimeout        time.Duration
	GracefulShutdown  time.Duration

	WatchAllNamespaces bool
	WatchLabelSelector string
	RuntimeNamespace   string

	Limits Limits
	// MemoryBudget is zero where it is derived.
	MemoryBudget int64
	// GitCachePath is empty where it is derived; see gitCachePath.
	GitCachePath  string
	GitCacheBytes int64
	// TmpBudget is zero where it is derived; see TmpBytes.
	TmpBudget           int64
	EgressDeny          []string
	EgressAllowLoopback bool
	KexAlgorithms       []string
	HostKeyAlgorithms   []string

	// SystemNamespace has the catalogue that every namespace may choose from.
	SystemNamespace string
	// SystemNamespaceExclusive says that no other process works with SystemNamespace.
	SystemNamespaceExclusive bool
	DefaultServiceAccount    string
	ModulesOwnIdentity       bool
	// TargetFields is the ConfigMap in RuntimeNamespace that says what sets see of their targets.
	TargetFields string
	BuildWorkers int

	// BucketCachePath is empty where it is derived; see bucketCachePath.
	BucketCachePath  string
	BucketCacheBytes int64
	// GCPTokenHosts and AzureAuthorityHosts may give tokens, beside those of the clouds.
	GCPTokenHosts, AzureAuthorityHosts []string

	// OCITokenHosts may hand out tokens for any registry.
	OCITokenHosts          []string
	OCIVerifyAnyRepository bool
	// NoCrossNamespaceRefs keeps generators from copying out of other namespaces.
	NoCrossNamespaceRefs bool
	// HelmChartRevisionByContent has versions of charts move with their content alone.
	HelmChartRevisionByContent bool
	// FunctionsConfigMap says which functions packages may bring themselves; it is in RuntimeNamespace. Empty allows none.
	FunctionsConfigMap string
	FunctionsTimeout   time.Duration
	// FunctionsBudget is zero where it is derived.
	FunctionsBudget    int64
	TokenCacheSize     int
	TokenCacheDuration time.Duration

	KubeQPS        float32
	KubeBurst      int
	Log            logger.Options
	LeaderElection leaderelection.Options
	RateLimiter    controller.RateLimiterOptions
	Jitter         jitter.IntervalOptions
}

// Limits bound what one upstream may cost.
type Limits struct {
	GitPackBytes     int64
	GitObjectBytes   int64
	GitUnpackedBytes int64
	GitObjects       int
	GitRefs          int
	OCIManifestBytes int64
	OCILayerBytes    int64
	OCITags          int
	OCISignatures    int
	BucketObjects    int
	HelmIndexBytes   int64
	HelmChartBytes   int64
	HelmFileBytes    int64
	ArtifactBytes    int64
	ArchiveBytes     int64
	ArchiveFiles     int
	ArchiveDepth     int
	ServerConns      int
	ServerConnsByIP  int
	BuildBytes       int64
	CacheBytes       int64
}

// BindFlags binds the options to flags. Defaults of some come from the environment.
func (o *Options) BindFlags(fs *pflag.FlagSet, env func(string) (string, bool)) {
	fromEnv := func(key, fallback string) string {
		if value, ok := env(key); ok && value != "" {
			return value
		}
		return fallback
	}
	o.RuntimeNamespace = fromEnv("RUNTIME_NAMESPACE", "")

	fs.StringSliceVar(&o.Controllers, "controllers", nil,
		"The planes whose controllers run: "+strings.Join(planes, ", ")+"; every one whose CRDs are served when empty.")
	fs.StringToStringVar(&o.FeatureGates, "feature-gates", nil,
		"Flux's feature gates, as name=true or name=false. Offered: "+strings.Join(gates, ", ")+". Others must be false.")
	fs.StringVar(&o.MetricsAddr, "metrics-addr", fromEnv("METRICS_ADDR", ":8080"), "The address the metric endpoint binds to; 0 turns it off.")
	fs.StringVar(&o.HealthAddr, "health-addr", ":9440", "The address the health endpoint binds to.")
	fs.StringVar(&o.PprofAddr, "pprof-addr", "", "The address the profiling endpoint binds to; off when empty.")
	fs.StringVar(&o.EventsAddr, "events-addr", fromEnv("EVENTS_ADDR", ""), "The address of the events receiver; none when empty.")

	fs.StringVar(&o.StoragePath, "storage-path", fromEnv("STORAGE_PATH", "/data"), "The folder that artifacts are stored in; it must exist.")
	fs.StringVar(&o.StorageAddr, "storage-addr", fromEnv("STORAGE_ADDRESS", ":9090"), "The address the artifact server binds to.")
	fs.StringVar(&o.StorageAdvAddr, "storage-adv-addr", fromEnv("STORAGE_ADV_ADDR", ""),
		"The address under which consumers reach the artifact server; derived from --storage-addr when empty.")
	fs.DurationVar(&o.RetentionTTL, "artifact-retention-ttl", time.Minute, "How long an artifact is kept after status has named another one.")
	fs.IntVar(&o.RetentionRecords, "artifact-retention-records", 2, "The most artifacts kept for one object, the current one included.")
	fs.StringVar(&o.DigestAlgorithm, "artifact-digest-algo", digest.Canonical.String(), "The digest algorithm of artifacts: sha256, sha384 or sha512.")
	fs.DurationVar(&o.ScrubInterval, "storage-scrub-interval", 24*time.Hour, "How often all stored bytes are checked against their digests; 0 turns it off.")

	fs.IntVar(&o.Concurrent, "concurrent", 10, "The number of objects fetched and archived at once, for each kind; half of it for one namespace. Ten times as many are looked at.")
	fs.DurationVar(&o.RequeueDependency, "requeue-dependency", 30*time.Second, "The delay before an object that waits for another one is looked at again.")
	fs.DurationVar(&o.MaxTimeout, "max-timeout", time.Hour, "The most that any spec.timeout may ask for; longer ones are cut to it. 0 takes the ceiling away.")
	fs.DurationVar(&o.GracefulShutdown, "graceful-shutdown-timeout", 8*time.Second, "How long running requests and reconciles may take to end when the process is stopped.")
	fs.BoolVar(&o.WatchAllNamespaces, "watch-all-namespaces", true, "Watch objects in all namespaces; if false, only in the one named by RUNTIME_NAMESPACE.")
	fs.StringVar(&o.WatchLabelSelector, "watch-label-selector", "", "Watch only objects with these labels, e.g. sharding.fluxcd.io/key=shard1.")

	fs.StringSliceVar(&o.EgressDeny, "egress-deny", nil,
		"Address ranges that sources may not be fetched from, beside those of metadata services; checked when connecting, after name resolution.")
	fs.BoolVar(&o.EgressAllowLoopback, "egress-allow-loopback", false,
		"Let sources, and artifacts for installations, be fetched from this machine itself.")
	fs.StringSliceVar(&o.KexAlgorithms, "ssh-kex-algos", nil, "The key exchange algorithms for SSH, in order of preference; the defaults when empty.")
	fs.StringSliceVar(&o.HostKeyAlgorithms, "ssh-hostkey-algos", nil, "The host key algorithms for SSH, in order of preference; those of known_hosts when empty.")
	fs.StringVar(&o.SystemNamespace, "system-namespace", fromEnv("RUNTIME_NAMESPACE", ""),
		"The namespace whose templates and modules every namespace may choose from; none when empty.")
	fs.BoolVar(&o.SystemNamespaceExclusive, "system-namespace-exclusive", false,
		"Say that no other process works with the system namespace, where not all namespaces are watched.")
	fs.StringVar(&o.DefaultServiceAccount, "default-service-account", "",
		"The ServiceAccount, in its own namespace, as which an installation works that names none.")
	fs.BoolVar(&o.ModulesOwnIdentity, "modules-own-identity", false,
		"Let installations without a ServiceAccount work as the controller itself.")
	fs.StringVar(&o.TargetFields, "target-fields", "sluice-target-fields",
		"The ConfigMap, in the controller's own namespace, that names which fields of spec and status sets of packages see of their targets; none when empty.")
	fs.IntVar(&o.BuildWorkers, "build-workers", 2, "The most processes that run kustomize at once; half of them for one namespace.")
	fs.StringSliceVar(&o.OCITokenHosts, "oci-token-hosts", nil,
		"Hosts that may hand out tokens for any registry, beside those of the registry's own domain.")
	fs.BoolVar(&o.OCIVerifyAnyRepository, "oci-verify-any-repository", false,
		"Accept cosign's simple signatures that name another repository than the one they are found in, as those in a mirror do.")
	o.bindFunctions(fs)
	fs.IntVar(&o.TokenCacheSize, "token-cache-max-size", 100, "The most logins to clouds that are kept; 0 keeps none.")
	fs.DurationVar(&o.TokenCacheDuration, "token-cache-max-duration", time.Hour, "How long a login to a cloud is kept at most.")
	o.Limits.bind(fs)
	fs.Int64Var(&o.MemoryBudget, "memory-budget", 0,
		"The most bytes of memory that everything sizeable takes together; half of GOMEMLIMIT, or of what the container leaves, when 0.")
	o.bindUpstreams(fs)
	fs.Int64Var(&o.TmpBudget, "tmp-budget", 0,
		"The most bytes that sources take together in temporary files; what follows from the limits of one object when 0.")

	fs.Float32Var(&o.KubeQPS, "kube-api-qps", 50, "The most requests a second to the API server, on average.")
	fs.IntVar(&o.KubeBurst, "kube-api-burst", 300, "The most requests to the API server at once.")
	o.Log.BindFlags(fs)
	o.LeaderElection.BindFlags(fs)
	o.RateLimiter.BindFlags(fs)
	o.Jitter.BindFlags(fs)
}

// bindHelmCache takes Flux's flags for parsed indexes that are kept in memory. There are none here: a chart is read from the
// stored index by itself.
func bindHelmCache(fs *pflag.FlagSet) {
	fs.Int("helm-cache-max-size", 0, "Accepted for Flux's sake, and does nothing: no index is held in memory.")
	fs.Duration("helm-cache-ttl", 15*time.Minute, "Accepted for Flux's sake, and does nothing.")
	fs.Duration("helm-cache-purge-interval", time.Minute, "Accepted for Flux's sake, and does nothing.")
}

func (o *Options) bindFunctions(fs *pflag.FlagSet) {
	fs.StringVar(&o.FunctionsConfigMap, "functions-configmap", "",
		"The ConfigMap, in the namespace named by RUNTIME_NAMESPACE, that says which functions packages may bring themselves; none may when empty.")
	fs.DurationVar(&o.FunctionsTimeout, "functions-timeout", 10*time.Second, "How long a function that a package brings may run.")
	fs.Int64Var(&o.FunctionsBudget, "functions-budget", 0,
		"The most bytes of --memory-budget that functions which packages bring take together, compiled and running; a quarter of it when 0.")
}

func (o *Options) bindUpstreams(fs *pflag.FlagSet) {
	fs.StringVar(&o.GitCachePath, "git-cache-path", "",
		"The folder for objects from Git servers that are kept for the next fetch; sluice-git-cache in TMPDIR when empty.")
	fs.Int64Var(&o.GitCacheBytes, "git-cache-max-size", 1<<30,
		"The most bytes of objects from Git servers that are kept for the next fetch; 0 keeps none.")
	fs.StringVar(&o.BucketCachePath, "bucket-cache-path", "",
		"The folder for what is known of the objects in artifacts, and for objects from buckets that are kept; sluice-bucket-cache in TMPDIR when empty.")
	fs.Int64Var(&o.BucketCacheBytes, "bucket-cache-max-size", 512<<20,
		"The most bytes of objects from buckets that are kept for the next fetch; 0 keeps none.")
	fs.BoolVar(&o.Generators, "artifact-generators", true,
		"Work for ArtifactGenerators, where the API server serves them. Two programs that do are in each other's way.")
	fs.BoolVar(&o.NoCrossNamespaceRefs, "no-cross-namespace-refs", true,
		"Refuse sources of other namespaces in ArtifactGenerators.")
	fs.BoolVar(&o.HelmChartRevisionByContent, "helm-chart-revision-by-content", false,
		"Has a HelmChart with the reconcileStrategy Revision be a new version where what it is made of has changed, and not at each revision of its source.")
	fs.StringSliceVar(&o.GCPTokenHosts, "gcp-token-hosts", nil,
		"Hosts that keys of Google service accounts in Secrets may be exchanged for tokens at, beside Google's own.")
	fs.StringSliceVar(&o.AzureAuthorityHosts, "azure-authority-hosts", nil,
		"Hosts that principals of Azure in Secrets may get tokens from, beside Azure's own.")
}

func (l *Limits) bind(fs *pflag.FlagSet) {
	fs.Int64Var(&l.GitPackBytes, "git-max-pack-bytes", 512<<20, "The most bytes one fetch may receive from a Git server.")
	fs.Int64Var(&l.GitObjectBytes, "git-max-object-bytes", 128<<20, "The most bytes of one object from a Git server; a quarter of it for objects sent as deltas.")
	fs.Int64Var(&l.GitUnpackedBytes, "git-max-unpacked-bytes", 4<<30, "The most bytes of all objects of one fetch from a Git server, unpacked.")
	fs.IntVar(&l.GitObjects, "git-max-objects", 1_000_000, "The most objects one fetch may receive from a Git server.")
	fs.IntVar(&l.GitRefs, "git-max-refs", 200_000, "The most references a Git server may list.")
	fs.Int64Var(&l.OCIManifestBytes, "oci-max-manifest-bytes", 4<<20, "The most bytes of a manifest or index from a registry.")
	fs.Int64Var(&l.OCILayerBytes, "oci-max-layer-bytes", 512<<20, "The most bytes of one layer from a registry, compressed.")
	fs.IntVar(&l.OCITags, "oci-max-tags", 100_000, "The most tags a repository in a registry may list.")
	fs.IntVar(&l.OCISignatures, "oci-max-signatures", 50, "The most signatures of an artifact in a registry that are looked at.")
	fs.IntVar(&l.BucketObjects, "bucket-max-objects", 200_000, "The most objects a bucket may list below the prefix.")
	bindHelmCache(fs)
	fs.Int64Var(&l.HelmIndexBytes, "helm-index-max-size", helmsource.DefaultMaxIndexBytes, "The most bytes of the index of a Helm repository, compressed or not.")
	fs.Int64Var(&l.HelmChartBytes, "helm-chart-max-size", chart.DefaultMaxPackage, "The most bytes of the package of a Helm chart.")
	fs.Int64Var(&l.HelmFileBytes, "helm-chart-file-max-size", chart.DefaultMaxFile, "The most bytes of a single file of a Helm chart.")
	fs.Int64Var(&l.ArtifactBytes, "artifact-max-bytes", 256<<20, "The most bytes of one stored artifact.")
	fs.Int64Var(&l.ArchiveBytes, "archive-max-bytes", 512<<20, "The most bytes of all files in one artifact, uncompressed.")
	fs.IntVar(&l.ArchiveFiles, "archive-max-files", 100_000, "The most files and folders in one artifact.")
	fs.IntVar(&l.ArchiveDepth, "archive-max-depth", 256, "The most folders inside each other in one artifact.")
	fs.Int64Var(&l.BuildBytes, "build-max-bytes", 256<<20, "The most bytes that one process that runs kustomize may allocate.")
	fs.Int64Var(&l.CacheBytes, "artifact-cache-max-bytes", 2<<30, "The most bytes of unpacked artifacts that are kept for installations.")
	fs.IntVar(&l.ServerConns, "storage-max-connections", 1024, "The most connections the artifact server holds.")
	fs.IntVar(&l.ServerConnsByIP, "storage-max-connections-per-ip", 256, "The most connections the artifact server holds with one client address.")
}

// gateObjectLevelWorkloadIdentity is Flux's gate for objects that log in to a cloud as a ServiceAccount of their own.
const gateObjectLevelWorkloadIdentity = "ObjectLevelWorkloadIdentity"

// gates are the feature gates that may be enabled.
var gates = []string{gateObjectLevelWorkloadIdentity} //nolint:gochecknoglobals // A constant list.

func (o *Options) enabled(gate string) bool { return o.FeatureGates[gate] == "true" }

// selector is what --watch-label-selector selects.
func (o *Options) selector() (labels.Selector, error) {
	selector, err := labels.Parse(o.WatchLabelSelector)
	if err != nil {
		return nil, fmt.Errorf("--watch-label-selector: %w", err)
	}
	return selector, nil
}

// denied are the address ranges of --egress-deny.
func (o *Options) denied() ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(o.EgressDeny))
	for _, text := range o.EgressDeny {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--egress-deny: %w", err)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// retentionTTL is the flag as the retention policy spells it: there, zero is the default and less keeps nothing.
func (o *Options) retentionTTL() time.Duration { return cmp.Or(o.RetentionTTL, -1) }

// advertised is where consumers reach the artifact server: the flag, or what --storage-addr says, with this host's
// name where that names no host.
func (o *Options) advertised() (source.Address, error) {
	if o.StorageAdvAddr != "" {
		return source.Address(o.StorageAdvAddr), nil
	}
	host, port, err := net.SplitHostPort(o.StorageAddr)
	if err != nil {
		return "", fmt.Errorf("--storage-addr: %w", err)
	}
	switch host {
	case "":
		host = "localhost"
	case "0.0.0.0", "::":
		if host = os.Getenv("HOSTNAME"); host == "" {
			if host, err = os.Hostname(); err != nil {
				return "", fmt.Errorf("derive --storage-adv-addr: %w", err)
			}
		}
	}
	return source.Address(net.JoinHostPort(host, port)), nil
}
