// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

// parse returns the options of a command line.
func parse(t *testing.T, arguments ...string) *options.Options {
	t.Helper()
	opts := options.New(apiserver.NewCodecs(apiserver.NewScheme()))
	flags := pflag.NewFlagSet("slipstream", pflag.ContinueOnError)
	sets := opts.Flags()
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return opts
}

// fileWith returns a file with content.
func fileWith(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name      string
		arguments []string
		// wants are parts of the error; none means that there is no error
		wants []string
	}{
		{name: "the defaults"},
		{
			name: "traces without a file", arguments: []string{"--tracing-config-file=/missing.yaml"},
			wants: []string{`--tracing-config-file=/missing.yaml: unable to read tracing configuration from "/missing.yaml"`},
		},
		{
			name: "traces with an unknown field",
			arguments: []string{"--tracing-config-file=" + fileWith(t, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"+
				"url: collector:4317\n")},
			wants: []string{"--tracing-config-file=", `unable to decode tracing configuration data: strict decoding error: unknown field "url"`},
		},
		{
			name: "traces with invalid fields",
			arguments: []string{"--tracing-config-file=" + fileWith(t, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"+
				"endpoint: http://collector:4317\nsamplingRatePerMillion: 2000000\n")},
			wants: []string{"endpoint: Invalid value", "unsupported scheme: http", "samplingRatePerMillion: Invalid value"},
		},
		{
			name: "traces",
			arguments: []string{"--tracing-config-file=" + fileWith(t, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"+
				"endpoint: collector:4317\nsamplingRatePerMillion: 1000\n")},
		},
		{
			name: "traces with an egress selector",
			arguments: []string{"--egress-selector-config-file=" + fileWith(t, ""), "--tracing-config-file=" + fileWith(t,
				"apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: collector:4317\n")},
			wants: []string{"--tracing-config-file cannot be used with --egress-selector-config-file"},
		},
		{name: "etcd", arguments: []string{"--storage-backend=etcd3", "--etcd-servers=http://127.0.0.1:2379"}},
		{
			name: "etcd without servers", arguments: []string{"--storage-backend=etcd3"},
			wants: []string{"--etcd-servers must be specified"},
		},
		{
			name: "etcd's servers with bbolt", arguments: []string{"--etcd-servers=http://127.0.0.1:2379"},
			wants: []string{"--etcd-servers has no meaning with --storage-backend=bbolt"},
		},
		{
			name: "an unknown backend", arguments: []string{"--storage-backend=sqlite"},
			wants: []string{`--storage-backend="sqlite" must be bbolt or etcd3`},
		},
		{
			name: "a relative folder", arguments: []string{"--data-dir=data"},
			wants: []string{`--data-dir="data" must be an absolute path`},
		},
		{
			name: "a relative folder of the archive", arguments: []string{"--archive-dir=archive"},
			wants: []string{`--archive-dir="archive" must be an absolute path`},
		},
		{
			name: "files without compaction", arguments: []string{"--etcd-compaction-interval=0"},
			wants: []string{"--etcd-compaction-interval=0s must be at least 1s with --storage-backend=bbolt"},
		},
		{
			name:      "an etcd that compacts itself",
			arguments: []string{"--etcd-compaction-interval=0", "--storage-backend=etcd3", "--etcd-servers=http://127.0.0.1:2379"},
		},
		{
			name: "an unknown destination", arguments: []string{"--allow-destinations=loopback,everything"},
			wants: []string{"--allow-destinations", "everything"},
		},
		{
			name: "every namespace for the identity at Azure", arguments: []string{"--git-azure-namespaces=*"},
			wants: []string{`--git-azure-namespaces: "*" must be NAMESPACE or NAMESPACE/ORGANIZATION`},
		},
		{
			name: "Azure DevOps over http", arguments: []string{"--git-azure-urls=http://azure.example.com"},
			wants: []string{`--git-azure-urls: "http://azure.example.com" must be an https URL`},
		},
		{
			name: "the identity at Azure", arguments: []string{"--git-azure-namespaces=shop/contoso,team", "--git-azure-urls=https://azure.example.com"},
		},
		{name: "known destinations", arguments: []string{"--allow-destinations=loopback,link-local,10.0.0.0/8,192.0.2.1"}},
		{
			name: "a mark that is no key", arguments: []string{"--environment-tracking-marks=example.com/owner,no key"},
			wants: []string{"--environment-tracking-marks", `"no key"`},
		},
		{
			name: "an invalid namespace", arguments: []string{"--namespace=Not/One"},
			wants: []string{`--namespace="Not/One" is not a name of a namespace`},
		},
		{
			name:      "times that are too short",
			arguments: []string{"--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=9s"},
			wants: []string{
				"--leader-elect-lease-duration=10s must be at least --leader-elect-renew-deadline=10s plus --leader-elect-retry-period=9s",
				"--leader-elect-renew-deadline=10s must be more than 1.2 times --leader-elect-retry-period=9s",
			},
		},
		{
			name:      "a leader without time to drain",
			arguments: []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=6s"},
			wants: []string{
				"--leader-elect-lease-duration=15s must be at least --leader-elect-renew-deadline=10s plus --leader-elect-retry-period=6s",
			},
		},
		{
			name:      "a leader with less time to drain than it may need",
			arguments: []string{"--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s"},
			wants: []string{
				"--leader-elect-lease-duration=12s must be more than --leader-elect-renew-deadline=10s plus 2s, the time in which a leader stops",
			},
		},
		{
			name:      "a duration that a Lease cannot have",
			arguments: []string{"--leader-elect-lease-duration=16500ms", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=6s"},
			wants:     []string{"--leader-elect-lease-duration=16.5s must be whole seconds"},
		},
		{
			name:      "a leader with time to drain",
			arguments: []string{"--leader-elect-lease-duration=16s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=6s"},
		},
		{name: "one replica without a Lease", arguments: []string{"--leader-elect=false"}},
		{
			name:      "several replicas without a Lease",
			arguments: []string{"--leader-elect=false", "--storage-backend=etcd3", "--etcd-servers=http://127.0.0.1:2379"},
			wants:     []string{"--leader-elect=false is only allowed with --storage-backend=bbolt"},
		},
		{
			name: "a Lease that expires before it is renewed", arguments: []string{"--leases-lease-sec=10", "--leases-renew-sec=6"},
			wants: []string{"--leases-lease-sec=10 must be at least twice --leases-renew-sec=6"},
		},
		{
			name: "batches of nothing", arguments: []string{"--git-batch-max-files=0", "--workers-max-global=-1", "--git-max-memory-mib=31"},
			wants: []string{
				"--git-max-memory-mib=31 must be at least 32",
				"--git-batch-max-files=0 must be at least 1", "--workers-max-global=-1 must be at least 1",
			},
		},
		{
			name:      "an authority of the server's own",
			arguments: []string{"--serving-authority-secret=slipstream-ca", "--serving-service=slipstream"},
		},
		{
			name: "an authority with a short lifetime", arguments: []string{
				"--serving-authority-secret=slipstream-ca", "--serving-certificate-duration=1h", "--serving-authority-duration=2h",
			},
			wants: []string{"--serving-authority-duration=2h0m0s must be at least three times --serving-certificate-duration=1h0m0s"},
		},
		{
			name:      "certificates with a short lifetime",
			arguments: []string{"--serving-authority-secret=Not/One", "--serving-certificate-duration=1s"},
			wants: []string{
				"--serving-certificate-duration=1s must be at least 30s", `--serving-authority-secret="Not/One" is not a name of a Secret`,
			},
		},
		{
			name:      "two authorities",
			arguments: []string{"--serving-authority-secret=slipstream-ca", "--serving-authority-file=" + os.DevNull},
			wants: []string{
				"--serving-authority-secret and --serving-authority-file cannot be used together",
				"--serving-authority-file must be a file of certificates",
			},
		},
		{
			name:      "an authority of the server's own and a file",
			arguments: []string{"--serving-authority-secret=slipstream-ca", "--tls-cert-file=/a.crt", "--tls-private-key-file=/a.key"},
			wants:     []string{"--serving-authority-secret cannot be used with --tls-cert-file and --tls-private-key-file"},
		},
		{
			name: "an authority of no file", arguments: []string{"--serving-authority-file=/ca.crt"},
			wants: []string{"--serving-authority-file has no meaning without --tls-cert-file and --tls-private-key-file"},
		},
		{
			name: "an invalid Service", arguments: []string{"--serving-service=a.b"},
			wants: []string{`--serving-service="a.b" is not a name of a Service`},
		},
		{name: "no wait for authors", arguments: []string{"--attribution-max-wait=0"}},
		{
			name: "waits for authors that are too long", arguments: []string{"--attribution-max-wait=31s"},
			wants: []string{"--attribution-max-wait=31s must be between 0s and 30s"},
		},
		{
			name: "waits for authors that are negative", arguments: []string{"--attribution-max-wait=-1s"},
			wants: []string{"--attribution-max-wait=-1s must be between 0s and 30s"},
		},
		{
			name: "audit clients without a name", arguments: []string{"--audit-client-names="},
			wants: []string{"--audit-client-names must be one or several names"},
		},
		{
			name: "authorities that are missing", arguments: []string{"--audit-client-ca-file=/does/not/exist"},
			wants: []string{"--audit-client-ca-file must be a file of certificates in PEM", "/does/not/exist"},
		},
		{
			name: "a segment that can be guessed", arguments: []string{"--admission-segment-file=" + fileWith(t, "0123456789abcdef0123456789abcde")},
			wants: []string{"--admission-segment-file: the segment in line 1", "has 31 characters, want at least 32"},
		},
		{name: "a segment", arguments: []string{"--admission-segment-file=" + fileWith(t, "0123456789abcdef0123456789abcdef\n")}},
		{
			name: "authorities without a certificate", arguments: []string{"--audit-client-ca-file=" + fileWith(t, "none")},
			wants: []string{"--audit-client-ca-file must be a file of certificates in PEM"},
		},
		{
			name: "certificates at a path that is not served", arguments: []string{"--admission-client-ca-file=/does/not/exist"},
			wants: []string{
				"--admission-client-ca-file has no meaning without --admission-segment-file",
				"--admission-client-ca-file must be a file of certificates in PEM",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := parse(t, tt.arguments...).Validate()
			if (err != nil) != (len(tt.wants) > 0) {
				t.Fatalf("error = %v, want %q", err, tt.wants)
			}
			for _, want := range tt.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in the error:\n%v", want, err)
				}
			}
		})
	}
}

// TestCacheKeepsHistoryAsLongAsTheStore checks that the watch cache keeps events as long as the store keeps its history, so that
// clients that could resume need not list again.
func TestCacheKeepsHistoryAsLongAsTheStore(t *testing.T) {
	for interval, want := range map[string]time.Duration{"": 5 * time.Minute, "1h": time.Hour, "2s": 75 * time.Second} {
		var arguments []string
		if interval != "" {
			arguments = append(arguments, "--etcd-compaction-interval="+interval)
		}
		opts := parse(t, arguments...)
		if err := opts.Complete(); err != nil {
			t.Fatal(err)
		}
		if got := opts.Storage.Etcd.StorageConfig.EventsHistoryWindow; got != want {
			t.Errorf("compaction every %q: the cache keeps %v, want %v", interval, got, want)
		}
		if got := opts.Storage.Engine().CompactionInterval; interval != "" && !strings.HasPrefix(got.String(), interval) {
			t.Errorf("compaction every %q: the files are compacted every %v", interval, got)
		}
	}
}

func TestOneKubeconfigIsEnough(t *testing.T) {
	opts := parse(t, "--kubeconfig=/a", "--authorization-kubeconfig=/b", "--namespace=elsewhere")
	if err := opts.Complete(); err != nil {
		t.Fatal(err)
	}
	if got := opts.Recommended.Authentication.RemoteKubeConfigFile; got != "/a" {
		t.Errorf("authentication uses %s, want /a", got)
	}
	if got := opts.Recommended.Authorization.RemoteKubeConfigFile; got != "/b" {
		t.Errorf("authorization uses %s, want /b", got)
	}
	if got := opts.LeaderElection.ResourceNamespace; got != "elsewhere" {
		t.Errorf("the Lease is in %s, want the server's namespace", got)
	}
	if opts.Recommended.SecureServing.ServerCert.GeneratedCert == nil {
		t.Error("no certificate was generated")
	}
}

func TestNamespaceComesFromThePod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "from-the-pod")
	if got := parse(t).Namespace; got != "from-the-pod" {
		t.Errorf("namespace = %s, want from-the-pod", got)
	}
}
