// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"
)

const apiServicePath = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.configbutler.ai"

// fixed serves objects by path. The others do not exist. An object that is a metav1.Status is an error.
func fixed(t *testing.T, objects map[string]any) *server {
	t.Helper()
	s := &server{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, found := objects[r.URL.Path]
		if !found {
			answer = apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, r.URL.Path).Status()
		}
		if status, ok := answer.(metav1.Status); ok {
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.WriteHeader(int(status.Code))
			answer = status
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))}
	t.Cleanup(s.Close)
	return s
}

func apiService(spec map[string]any, available string) map[string]any {
	return map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1alpha1.configbutler.ai"}, "spec": spec,
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Available", "status": available, "reason": "MissingEndpoints", "message": "no endpoints"},
		}},
	}
}

// registered is the specification of the APIService of an installation in the namespace mirrors.
func registered() map[string]any {
	return map[string]any{
		"caBundle": []byte("the authority\n"), "service": map[string]any{"namespace": "mirrors", "name": "slip", "port": 8443},
	}
}

func service(clusterIP string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "slip"}, "spec": map[string]any{"clusterIP": clusterIP},
	}
}

const servicePath = "/api/v1/namespaces/mirrors/services/slip"

func TestWebhookConfig(t *testing.T) {
	s := fixed(t, map[string]any{apiServicePath: apiService(registered(), "True"), servicePath: service("fd00::7")})
	dir := filepath.Join(t.TempDir(), "au dit")
	out, notes, code, err := s.call(t.Context(), "webhook-config", "--dir", dir, "--node-dir", dir, "--direct-admission")
	if code != 0 || notes != "" {
		t.Fatalf("exit code %d, %v: %s", code, err, notes)
	}
	for _, want := range []string{
		"kubectl create secret generic slipstream-audit -n mirrors '--from-file=ca.crt=" + dir + "/audit-ca.crt'\n",
		"   --audit-policy-file=" + dir + "/audit-policy.yaml\n   --audit-webhook-config-file=" + dir + "/audit-webhook-kubeconfig.yaml\n",
		"kubectl create secret generic slipstream-admission -n mirrors '--from-file=segment=" + dir + "/segment'\n", "kubectl apply -f '" + dir + "/validating",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	wantModes(t, dir, map[string]os.FileMode{
		"audit-ca.crt": 0o644, "audit-ca.key": 0o600, "audit-client.crt": 0o644, "audit-client.key": 0o600, "slipstream-ca.crt": 0o644,
		"audit-policy.yaml": 0o644, "audit-webhook-kubeconfig.yaml": 0o644, "segment": 0o600, "validating-webhook-configuration-direct.yaml": 0o600,
	})
	if content := read(t, dir, "slipstream-ca.crt"); content != "the authority\n" {
		t.Errorf("slipstream-ca.crt has %q", content)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "audit-webhook-kubeconfig.yaml"))
	if err != nil || config.Host != "https://[fd00::7]:8443/audit" || config.ServerName != "slip.mirrors.svc" ||
		config.CertFile != dir+"/audit-client.crt" || config.KeyFile != dir+"/audit-client.key" || config.CAFile != dir+"/slipstream-ca.crt" {
		t.Errorf("kubeconfig %+v, %v", config, err)
	}
	var policy auditv1.Policy
	if err := yaml.UnmarshalStrict([]byte(read(t, dir, "audit-policy.yaml")), &policy); err != nil || len(policy.Rules) == 0 {
		t.Errorf("policy: %v", err)
	}
	segment := strings.TrimSpace(read(t, dir, "segment"))
	admission := read(t, dir, "validating-webhook-configuration-direct.yaml")
	for _, want := range []string{"/process-validating-webhook/" + segment + "\n", "namespace: mirrors\n      name: slip\n      port: 8443\n"} {
		if len(segment) != 64 || strings.Contains(admission, "${") || !strings.Contains(admission, want) {
			t.Errorf("segment %q, no %q in\n%s", segment, want, admission)
		}
	}
	wantClient(t, dir, 365)
}

// TestWebhookConfigWritesOnce replaces no file without --force, and with it does not write through links.
func TestWebhookConfigWritesOnce(t *testing.T) {
	s := fixed(t, map[string]any{apiServicePath: apiService(registered(), "True")})
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "audit-client.key")); err != nil {
		t.Fatal(err)
	}
	args := []string{"webhook-config", "--dir", dir, "--address", "10.0.0.1:443"}
	_, _, code, err := s.call(t.Context(), args...)
	if code != 2 || err == nil || !strings.Contains(err.Error(), "has audit-client.key already: --force replaces them") {
		t.Errorf("exit code %d, %v", code, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
	if _, _, code, err := s.call(t.Context(), append(args, "--force")...); code != 0 {
		t.Fatalf("with --force: exit code %d, %v", code, err)
	}
	if content, err := os.ReadFile(elsewhere); err != nil || string(content) != "mine" {
		t.Errorf("wrote through a link: %q, %v", content, err)
	}
	wantModes(t, dir, map[string]os.FileMode{"audit-client.key": 0o600})
	wantClient(t, dir, 365)
}

// TestWebhookConfigRenews replaces only the client certificate, also without a cluster.
func TestWebhookConfigRenews(t *testing.T) {
	s := fixed(t, map[string]any{apiServicePath: apiService(registered(), "True")})
	dir := t.TempDir()
	if _, _, code, err := s.call(t.Context(), "webhook-config", "--dir", dir, "--address", "10.0.0.1:443"); code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	authority, client := read(t, dir, "audit-ca.crt"), read(t, dir, "audit-client.crt")
	s.Close()
	out, _, code, err := s.call(t.Context(), "webhook-config", "--dir", dir, "--renew", "--days", "30")
	if code != 0 || !strings.HasPrefix(out, "Copy audit-client.crt and audit-client.key to /etc/kubernetes/slipstream on every") {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	if read(t, dir, "audit-ca.crt") != authority || read(t, dir, "audit-client.crt") == client {
		t.Error("the authority has changed, or the certificate has not")
	}
	wantClient(t, dir, 30)
	if err := os.WriteFile(filepath.Join(dir, "audit-ca.key"), []byte(read(t, dir, "audit-client.key")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, code, err := s.call(t.Context(), "webhook-config", "--dir", dir, "--renew"); code != 2 || !strings.Contains(err.Error(), "not that of an authority with this key") {
		t.Errorf("with another key: exit code %d, %v", code, err)
	}
}

// TestWebhookConfigFailsWhole checks that the certificate is not replaced if its key cannot be.
func TestWebhookConfigFailsWhole(t *testing.T) {
	s := fixed(t, map[string]any{apiServicePath: apiService(registered(), "True")})
	dir := t.TempDir()
	if _, _, code, err := s.call(t.Context(), "webhook-config", "--dir", dir, "--address", "10.0.0.1:443"); code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	certificate := read(t, dir, "audit-client.crt")
	if err := os.MkdirAll(filepath.Join(dir, "audit-client.key.new", "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, code, err := s.call(t.Context(), "webhook-config", "--dir", dir, "--renew"); code != 2 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if read(t, dir, "audit-client.crt") != certificate {
		t.Error("the certificate is replaced, and its key is not")
	}
	if _, err := os.Lstat(filepath.Join(dir, "audit-client.crt.new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
}

func TestWebhookConfigRejects(t *testing.T) {
	noBundle := registered()
	delete(noBundle, "caBundle")
	elsewhere := func(key string, value any) map[string]any {
		spec := registered()
		spec["service"].(map[string]any)[key] = value
		return map[string]any{apiServicePath: apiService(spec, "True")}
	}
	for name, test := range map[string]struct {
		api  map[string]any
		args []string
		want string
	}{
		"no folder":          {args: []string{"--dir", ""}, want: "--dir is missing"},
		"too long":           {args: []string{"--days", "4000"}, want: "--days is 4000: it is 1 to 3650"},
		"renewed and forced": {args: []string{"--renew", "--force"}, want: "leave out --force"},
		"nothing to renew":   {args: []string{"--renew"}, want: "audit-ca.crt"},
		"a relative folder":  {args: []string{"--node-dir", "etc"}, want: `--node-dir is "etc"`},
		"no port":            {args: []string{"--address", "10.0.0.1"}, want: `--address is "10.0.0.1": it is HOST:PORT`},
		"a URL":              {args: []string{"--address", "https://10.0.0.1:443"}, want: "it is HOST:PORT"},
		"no cluster IP":      {api: map[string]any{apiServicePath: apiService(registered(), "True"), servicePath: service("None")}, want: "give --address"},
		"not installed":      {want: "read how the server is registered"},
		"not served":         {api: map[string]any{apiServicePath: apiService(map[string]any{}, "True")}, want: "install the server first"},
		"a forged namespace": {api: elsewhere("namespace", "a; curl x"), want: `in the namespace "a; curl x" at the port 8443: a lowercase RFC 1123 label`},
		"a forged service":   {api: elsewhere("name", "a\n- b"), want: `names the Service "a\n- b"`},
		"a wrong port":       {api: elsewhere("port", 70000), want: "must be between 1 and 65535"},
		"a forged address": {
			api:  map[string]any{apiServicePath: apiService(registered(), "True"), servicePath: service("a' b")},
			want: `the cluster IP of the Service mirrors/slip is no address: "a' b"`,
		},
		"no authority yet": {api: map[string]any{apiServicePath: apiService(noBundle, "True")}, want: "has no caBundle yet"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "audit")
			out, _, code, err := fixed(t, test.api).call(t.Context(), append([]string{"webhook-config", "--dir", dir}, test.args...)...)
			if code != 2 || err == nil || !strings.Contains(err.Error(), test.want) || out != "" {
				t.Errorf("exit code %d, want %q: %v", code, test.want, err)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the folder was created: %v", err)
			}
		})
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func wantModes(t *testing.T, dir string, modes map[string]os.FileMode) {
	t.Helper()
	for name, want := range modes {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want mode %v", name, info, err, want)
		}
	}
}

// wantClient checks that the authority in a folder has signed the client certificate for a number of days.
func wantClient(t *testing.T, dir string, days int) {
	t.Helper()
	signed, err := cert.CertsFromFile(filepath.Join(dir, "audit-client.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots, err := cert.NewPool(filepath.Join(dir, "audit-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := signed[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: usages}); err != nil || signed[0].Subject.CommonName != "kube-apiserver-audit" {
		t.Errorf("the certificate of %s: %v", signed[0].Subject, err)
	}
	if left := time.Until(signed[0].NotAfter); left > time.Duration(days)*24*time.Hour || left < time.Duration(days-1)*24*time.Hour {
		t.Errorf("valid for %s instead of %d days", left, days)
	}
}
