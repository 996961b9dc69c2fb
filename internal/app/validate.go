package app

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Validate tells what is wrong with the options, all of it at once, naming the flags.
func (o *Options) Validate() error {
	return errors.Join(o.validatePlanes(), o.validateStorage(), o.validateWork(), o.validateProcess(), o.Limits.validate())
}

// problems collects what is wrong.
type problems []error

func (p *problems) refuse(wrong bool, format string, args ...any) {
	if wrong {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

func (o *Options) validatePlanes() error {
	var p problems
	for _, plane := range o.Controllers {
		p.refuse(!slices.Contains(planes, plane), "--controllers: there is no plane %q; choose from %s", plane, strings.Join(planes, ", "))
	}
	for name, value := range o.FeatureGates {
		p.refuse(value != "true" && value != "false", "--feature-gates: %s=%s: write true or false", name, value)
		p.refuse(value == "true" && !slices.Contains(gates, name),
			"--feature-gates: %s=%s: this feature is not offered; leave it out or set it to false", name, value)
	}
	return errors.Join(p...)
}

func (o *Options) validateStorage() error {
	var p problems
	blake3 := o.DigestAlgorithm == "blake3"
	p.refuse(blake3, "--artifact-digest-algo: blake3 is not supported; choose sha256, sha384 or sha512")
	p.refuse(!blake3 && !digest.Algorithm(o.DigestAlgorithm).Available(),
		"--artifact-digest-algo: %q is not known; choose sha256, sha384 or sha512", o.DigestAlgorithm)
	p.refuse(o.RetentionRecords < 1, "--artifact-retention-records: must be at least 1, not %d", o.RetentionRecords)
	p.refuse(o.RetentionTTL < 0, "--artifact-retention-ttl: must not be negative, not %s", o.RetentionTTL)
	p.refuse(o.ScrubInterval < 0, "--storage-scrub-interval: must not be negative, not %s", o.ScrubInterval)
	_, _, err := net.SplitHostPort(o.StorageAddr)
	p.refuse(err != nil, "--storage-addr: %w", err)
	return errors.Join(p...)
}

func (o *Options) validateWork() error {
	var p problems
	p.refuse(o.Concurrent < 1, "--concurrent: must be at least 1, not %d", o.Concurrent)
	p.refuse(o.RequeueDependency < 0, "--requeue-dependency: must not be negative, not %s", o.RequeueDependency)
	p.refuse(o.MaxTimeout < 0, "--max-timeout: must not be negative, not %s", o.MaxTimeout)
	p.refuse(o.Jitter.Percentage >= 100, "--interval-jitter-percentage: must be below 100, not %d", o.Jitter.Percentage)
	shortest, longest := o.RateLimiter.MinRetryDelay, o.RateLimiter.MaxRetryDelay
	p.refuse(shortest <= 0 || longest < shortest, "--min-retry-delay and --max-retry-delay: need 0 < min <= max, not %s and %s", shortest, longest)
	p.refuse(!o.WatchAllNamespaces && o.RuntimeNamespace == "",
		"--watch-all-namespaces=false: the environment variable RUNTIME_NAMESPACE must name the namespace to watch")
	p.refuse(slices.Contains(o.Controllers, planeModules) && !o.WatchAllNamespaces && !o.SystemNamespaceExclusive &&
		o.SystemNamespace != "" && o.SystemNamespace != o.RuntimeNamespace,
		"--system-namespace: %s is not the namespace that is watched, and a Sluice beside this one would let go of templates that are installed here; "+
			"watch all namespaces, or, if no other Sluice works with %s, set --system-namespace-exclusive", o.SystemNamespace, o.SystemNamespace)
	p.refuse(o.MemoryBudget != 0 && o.MemoryBudget < o.leastBudget(), "--memory-budget: must be 0 or at least %d, not %d", o.leastBudget(), o.MemoryBudget)
	p.refuse(o.FunctionsConfigMap != "" && o.RuntimeNamespace == "",
		"--functions-configmap: the environment variable RUNTIME_NAMESPACE must name the namespace that %s is in", o.FunctionsConfigMap)
	p.refuse(o.FunctionsTimeout <= 0, "--functions-timeout: must be above 0, not %s", o.FunctionsTimeout)
	p.refuse(o.FunctionsBudget < 0, "--functions-budget: must not be negative, not %d", o.FunctionsBudget)
	p.refuse(o.MemoryBudget != 0 && o.FunctionsBudget > o.MemoryBudget/2, "--functions-budget: must be half of --memory-budget at most, not %d of %d", o.FunctionsBudget, o.MemoryBudget)
	p.refuse(o.BucketCacheBytes < 0, "--bucket-cache-max-size: must not be negative, not %d", o.BucketCacheBytes)
	p.refuse(o.GitCacheBytes < 0, "--git-cache-max-size: must not be negative, not %d", o.GitCacheBytes)
	p.refuse(o.TmpBudget < 0, "--tmp-budget: must not be negative, not %d", o.TmpBudget)
	p.refuse(o.BuildWorkers < 1, "--build-workers: must be at least 1, not %d", o.BuildWorkers)
	beyond := func(plane string) bool { return plane != planeSource }
	p.refuse(o.WatchLabelSelector != "" && slices.ContainsFunc(o.Controllers, beyond),
		"--watch-label-selector: it shards sources; run it with --controllers=%s", planeSource)
	p.refuse(o.TokenCacheSize < 0, "--token-cache-max-size: must not be negative, not %d", o.TokenCacheSize)
	p.refuse(o.TokenCacheDuration <= 0, "--token-cache-max-duration: must be above 0, not %s", o.TokenCacheDuration)
	for _, host := range o.OCITokenHosts {
		p.refuse(host == "" || strings.ContainsAny(host, "/@* "), "--oci-token-hosts: %q is no host name", host)
	}
	_, selectorErr := o.selector()
	_, deniedErr := o.denied()
	return errors.Join(append(p, selectorErr, deniedErr)...)
}

func (o *Options) validateProcess() error {
	var p problems
	p.refuse(o.GracefulShutdown < 0, "--graceful-shutdown-timeout: must not be negative, not %s", o.GracefulShutdown)
	p.refuse(!slices.Contains([]string{"trace", "debug", "info", "error"}, o.Log.LogLevel),
		"--log-level: %q is none of trace, debug, info, error", o.Log.LogLevel)
	p.refuse(!slices.Contains([]string{"json", "console"}, o.Log.LogEncoding), "--log-encoding: %q is neither json nor console", o.Log.LogEncoding)
	p.refuse(o.KubeQPS <= 0 || o.KubeBurst < 1, "--kube-api-qps and --kube-api-burst: must be above 0, not %g and %d", o.KubeQPS, o.KubeBurst)
	e := o.LeaderElection
	p.refuse(e.Enable && (e.RetryPeriod <= 0 || e.RenewDeadline <= e.RetryPeriod || e.LeaseDuration <= e.RenewDeadline),
		"--leader-election-lease-duration, -renew-deadline and -retry-period: need 0 < retry < renew < lease, not %s, %s and %s",
		e.LeaseDuration, e.RenewDeadline, e.RetryPeriod)
	return errors.Join(p...)
}

func (l *Limits) validate() error {
	var p problems
	for name, value := range map[string]int64{
		"git-max-pack-bytes": l.GitPackBytes, "git-max-object-bytes": l.GitObjectBytes, "git-max-unpacked-bytes": l.GitUnpackedBytes,
		"git-max-objects": int64(l.GitObjects), "git-max-refs": int64(l.GitRefs),
		"oci-max-manifest-bytes": l.OCIManifestBytes, "oci-max-layer-bytes": l.OCILayerBytes,
		"oci-max-tags": int64(l.OCITags), "oci-max-signatures": int64(l.OCISignatures),
		"bucket-max-objects": int64(l.BucketObjects), "helm-index-max-size": l.HelmIndexBytes,
		"helm-chart-max-size": l.HelmChartBytes, "helm-chart-file-max-size": l.HelmFileBytes,
		"build-max-bytes": l.BuildBytes, "artifact-cache-max-bytes": l.CacheBytes,
		"artifact-max-bytes": l.ArtifactBytes, "archive-max-bytes": l.ArchiveBytes, "archive-max-files": int64(l.ArchiveFiles),
		"archive-max-depth": int64(l.ArchiveDepth), "storage-max-connections": int64(l.ServerConns),
		"storage-max-connections-per-ip": int64(l.ServerConnsByIP),
	} {
		p.refuse(value < 1, "--%s: must be at least 1, not %d", name, value)
	}
	return errors.Join(p...)
}
