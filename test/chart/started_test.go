// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

// configurations are the values that change the server's arguments, with the required Secrets and their keys as
// documented in values.yaml.
var configurations = map[string]struct {
	values  string
	secrets map[string][]string
}{
	"defaults": {values: "{}"},
	"own certificate": {
		values:  "{tls: {mode: secret, secretName: mine}}",
		secrets: map[string][]string{"mine": {"tls.crt", "tls.key", "ca.crt"}},
	},
	"certificate of cert-manager": {
		values:  "{tls: {mode: cert-manager}}",
		secrets: map[string][]string{"slipstream-tls": {"tls.crt", "tls.key", "ca.crt"}},
	},
	"all attribution webhooks": {
		values: `{attribution: {audit: {clientCASecret: audit, clientNames: [one, two]},
			admission: {mode: direct, create: false, segmentSecret: segment, clientCASecret: admission}}}`,
		secrets: map[string][]string{"audit": {"ca.crt"}, "segment": {"segment"}, "admission": {"ca.crt"}},
	},
	"own encryption keys": {
		values:  "{encryption: {configSecret: keys}}",
		secrets: map[string][]string{"keys": {"encryption.yaml"}},
	},
	"etcd": {
		values:  `{replicas: 2, storage: {backend: etcd3, etcd: {servers: ["https://a:2379", "https://b:2379"], prefix: /s, tlsSecret: etcd}}}`,
		secrets: map[string][]string{"etcd": {"tls.crt", "tls.key", "ca.crt"}},
	},
	"traces": {values: "{tracing: {endpoint: collector.observability.svc:4317, samplingRatePerMillion: 1000000}}"},
	"settings": {
		values: `{securePort: 8443, shutdownDelaySeconds: 3, flags: {git-batch-max-files: 500, v: 2, allow-destinations: [link-local, ` +
			`10.0.0.0/8]}}`,
	},
}

// The server accepts its arguments, and finds all files of the Secrets.
func TestServerAcceptsItsArguments(t *testing.T) {
	seen := map[string]bool{}
	for name, configuration := range configurations {
		t.Run(name, func(t *testing.T) {
			all := objects(t, configuration.values)
			pod := find[*appsv1.Deployment](t, all, "slipstream").Spec.Template.Spec
			folder := mount(t, pod, configuration.secrets)
			mountTracing(t, folder, among[*corev1.ConfigMap](t, all, "slipstream-tracing"))
			opts := options.New(apiserver.NewCodecs(apiserver.NewScheme()))
			flags := pflag.NewFlagSet("slipstream", pflag.ContinueOnError)
			for _, set := range opts.Flags().FlagSets {
				flags.AddFlagSet(set)
			}
			arguments := slices.Clone(pod.Containers[0].Args)
			for number, argument := range arguments {
				arguments[number] = strings.ReplaceAll(argument, "/etc/slipstream", folder)
			}
			if err := flags.Parse(arguments); err != nil {
				t.Fatal(err)
			}
			if err := opts.Complete(); err != nil {
				t.Fatal(err)
			}
			if err := opts.Validate(); err != nil {
				t.Fatal(err)
			}
			flags.Visit(func(flag *pflag.Flag) { seen[flag.Name] = true })
		})
	}
	for name, value := range flagsOfValues(t) {
		if !seen[name] {
			t.Errorf("no configuration sets --%s from %s", name, value)
		}
	}
}

// mount writes the files that the Pod mounts from Secrets with these keys, and returns the folder for /etc/slipstream.
func mount(t *testing.T, pod corev1.PodSpec, secrets map[string][]string) string {
	t.Helper()
	folder := t.TempDir()
	contents := fileContents(t)
	mounted := map[string]bool{}
	for _, each := range pod.Containers[0].VolumeMounts {
		at := slices.IndexFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.Name == each.Name })
		if at < 0 {
			t.Fatalf("volume %s does not exist", each.Name)
		}
		secret := pod.Volumes[at].Secret
		if secret == nil {
			continue
		}
		if *secret.DefaultMode != 0o440 || !each.ReadOnly {
			t.Errorf("volume %s has the mode %o, read-only: %v", each.Name, *secret.DefaultMode, each.ReadOnly)
		}
		mounted[secret.SecretName] = true
		for _, key := range secrets[secret.SecretName] {
			file := filepath.Join(folder, strings.TrimPrefix(each.MountPath, "/etc/slipstream"), key)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, contents[key], 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(mounted)), slices.Sorted(maps.Keys(secrets)); !slices.Equal(got, want) {
		t.Errorf("mounted Secrets = %v, want %v", got, want)
	}
	return folder
}

// mountTracing writes the files of a ConfigMap for traces, if there is one.
func mountTracing(t *testing.T, folder string, configs []*corev1.ConfigMap) {
	t.Helper()
	for _, config := range configs {
		if err := os.MkdirAll(filepath.Join(folder, "tracing"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range config.Data {
			if err := os.WriteFile(filepath.Join(folder, "tracing", name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fileContents returns valid contents for the keys of Secrets.
func fileContents(t *testing.T) map[string][]byte {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("slipstream.slipstream-system.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"tls.crt": certificate, "tls.key": key, "ca.crt": certificate,
		"segment":         []byte(strings.Repeat("0123456789abcdef", 4) + "\n"),
		"encryption.yaml": []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"),
	}
}
