package app

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// parse reads the flags as the command does.
func parse(t *testing.T, env map[string]string, args ...string) Options {
	t.Helper()
	var options Options
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	options.BindFlags(flags, func(key string) (string, bool) {
		value, ok := env[key]
		return value, ok
	})
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return options
}

func TestDefaultsAreValidAndFluxs(t *testing.T) {
	t.Parallel()
	options := parse(t, nil)
	if err := options.Validate(); err != nil {
		t.Error(err)
	}
	if options.StoragePath != "/data" || options.StorageAddr != ":9090" || options.MetricsAddr != ":8080" || options.HealthAddr != ":9440" ||
		options.RetentionTTL != time.Minute || options.RetentionRecords != 2 || options.DigestAlgorithm != "sha256" {
		t.Errorf("got %+v", options)
	}
}

func TestEnvironmentGivesDefaultsAndFlagsWin(t *testing.T) {
	t.Parallel()
	env := map[string]string{"STORAGE_PATH": "/env", "STORAGE_ADDRESS": ":1", "STORAGE_ADV_ADDR": "adv", "EVENTS_ADDR": "http://events", "METRICS_ADDR": ":2"}
	options := parse(t, env, "--storage-path=/flag")
	if options.StoragePath != "/flag" || options.StorageAddr != ":1" || options.StorageAdvAddr != "adv" || options.EventsAddr != "http://events" || options.MetricsAddr != ":2" {
		t.Errorf("got %+v", options)
	}
}

func TestWrongOptionsAreNamed(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"--artifact-digest-algo: blake3":   {"--artifact-digest-algo=blake3"},
		"--artifact-digest-algo: \"md5\"":  {"--artifact-digest-algo=md5"},
		"--artifact-retention-records":     {"--artifact-retention-records=0"},
		"--artifact-retention-ttl":         {"--artifact-retention-ttl=-1s"},
		"--feature-gates: X=true":          {"--feature-gates=X=true"},
		"--log-level":                      {"--log-level=loud"},
		"--log-encoding":                   {"--log-encoding=xml"},
		"--kube-api-qps":                   {"--kube-api-qps=0"},
		"--leader-election-lease":          {"--enable-leader-election", "--leader-election-lease-duration=1s"},
		"--concurrent":                     {"--concurrent=0"},
		"--controllers":                    {"--controllers=source,helm"},
		"--egress-deny":                    {"--egress-deny=10.0.0.0"},
		"--interval-jitter-percentage":     {"--interval-jitter-percentage=100"},
		"--max-retry-delay":                {"--max-retry-delay=1ms"},
		"--max-timeout":                    {"--max-timeout=-1s"},
		"--storage-addr":                   {"--storage-addr=9090"},
		"--watch-label-selector":           {"--watch-label-selector=a in b"},
		"RUNTIME_NAMESPACE":                {"--watch-all-namespaces=false"},
		"--git-max-pack-bytes":             {"--git-max-pack-bytes=0"},
		"--git-max-object-bytes":           {"--git-max-object-bytes=0"},
		"--git-max-unpacked-bytes":         {"--git-max-unpacked-bytes=-1"},
		"--archive-max-files":              {"--archive-max-files=-1"},
		"--storage-max-connections-per-ip": {"--storage-max-connections-per-ip=0"},
	}
	for says, args := range cases {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			options := parse(t, nil, args...)
			if err := options.Validate(); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestASystemNamespaceHasOneSluice: who sees the installations of one namespace alone cannot tell which templates of
// another are in use.
func TestASystemNamespaceHasOneSluice(t *testing.T) {
	t.Parallel()
	env := map[string]string{"RUNTIME_NAMESPACE": "team-a"}
	for name, tc := range map[string]struct {
		reason  string
		args    []string
		refused bool
	}{
		"Shared":    {"another Sluice may be there", []string{"--controllers=modules", "--watch-all-namespaces=false", "--system-namespace=shared"}, true},
		"Exclusive": {"somebody says that there is none", []string{"--controllers=modules", "--watch-all-namespaces=false", "--system-namespace=shared", "--system-namespace-exclusive"}, false},
		"Own":       {"everything is seen that could need a template", []string{"--controllers=modules", "--watch-all-namespaces=false"}, false},
		"None":      {"there is nothing to share", []string{"--controllers=modules", "--watch-all-namespaces=false", "--system-namespace="}, false},
		"All":       {"all installations are seen", []string{"--controllers=modules", "--system-namespace=shared"}, false},
		"Source":    {"sources have no system namespace", []string{"--watch-all-namespaces=false", "--system-namespace=shared"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := parse(t, env, tc.args...)
			err := options.Validate()
			if refused := err != nil && strings.Contains(err.Error(), "--system-namespace-exclusive"); refused != tc.refused {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

func TestAllWrongOptionsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	options := parse(t, nil, "--concurrent=0", "--artifact-retention-records=0")
	err := options.Validate()
	if err == nil || !strings.Contains(err.Error(), "--concurrent") || !strings.Contains(err.Error(), "--artifact-retention-records") {
		t.Errorf("got %v", err)
	}
}

func TestAdvertisedAddress(t *testing.T) {
	t.Setenv("HOSTNAME", "pod-1")
	cases := map[string]struct {
		args []string
		want string
	}{
		"Given":   {[]string{"--storage-adv-addr=source-controller.flux-system"}, "http://source-controller.flux-system/p"},
		"NoHost":  {[]string{"--storage-addr=:9090"}, "http://localhost:9090/p"},
		"AnyHost": {[]string{"--storage-addr=0.0.0.0:9090"}, "http://pod-1:9090/p"},
		"Host":    {[]string{"--storage-addr=127.0.0.1:1234"}, "http://127.0.0.1:1234/p"},
		"AnyIPv6": {[]string{"--storage-addr=[::]:9090"}, "http://pod-1:9090/p"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := parse(t, nil, tc.args...)
			address, err := options.advertised()
			if err != nil || address.URL("p") != tc.want {
				t.Errorf("got %s, %v; want %s", address.URL("p"), err, tc.want)
			}
		})
	}
}

func TestJitterStaysWithinItsPercentage(t *testing.T) {
	t.Parallel()
	jitter, varied := jittered(5), false
	for range 1000 {
		got := jitter(time.Minute)
		if got < 57*time.Second || got > 63*time.Second {
			t.Fatalf("got %s", got)
		}
		varied = varied || got != time.Minute
	}
	if !varied || jittered(0)(time.Minute) != time.Minute {
		t.Error("the jitter does nothing, or cannot be turned off")
	}
}

func TestShardsHaveALeaseEach(t *testing.T) {
	t.Parallel()
	if whole, one, two := leaseName(""), leaseName("shard=1"), leaseName("shard=2"); whole != "source-controller-leader-election" || one == two || one == whole {
		t.Errorf("got %s, %s, %s", whole, one, two)
	}
}

func TestRetentionOfNothingIsNotTheDefault(t *testing.T) {
	t.Parallel()
	none, some := parse(t, nil, "--artifact-retention-ttl=0"), parse(t, nil, "--artifact-retention-ttl=5m")
	if none.retentionTTL() >= 0 || some.retentionTTL() != 5*time.Minute {
		t.Errorf("got %s and %s", none.retentionTTL(), some.retentionTTL())
	}
}
