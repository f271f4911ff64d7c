// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	genericoptions "k8s.io/apiserver/pkg/server/options"
)

const (
	admissionTypes  = "/apis/admissionregistration.k8s.io/v1"
	flowTypes       = "/apis/flowcontrol.apiserver.k8s.io/v1"
	webhooks        = `{"name": "validatingwebhookconfigurations"}`
	validatingTypes = webhooks + `, {"name": "validatingadmissionpolicies"}`
	allTypes        = validatingTypes + `, {"name": "mutatingadmissionpolicies"}`
	flowSchemas     = `{"name": "flowschemas"}`
)

// TestOmitUnserved checks what is turned off in clusters that serve fewer types, and that nothing is turned off after a failure.
func TestOmitUnserved(t *testing.T) {
	for name, test := range map[string]struct {
		served  map[string]string
		enable  []string
		disable []string
		want    []string
		isFair  bool
		failure string
	}{
		"all":                  {served: map[string]string{admissionTypes: allTypes, flowTypes: flowSchemas}, isFair: true},
		"no mutating policies": {served: map[string]string{admissionTypes: validatingTypes, flowTypes: flowSchemas}, want: []string{"MutatingAdmissionPolicy"}, isFair: true},
		"no flow schemas":      {served: map[string]string{admissionTypes: allTypes}},
		"none":                 {served: map[string]string{admissionTypes: webhooks}, want: []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}},
		"off anyway": {
			served: map[string]string{admissionTypes: validatingTypes}, disable: []string{"MutatingAdmissionPolicy"}, want: []string{"MutatingAdmissionPolicy"},
		},
		"required": {
			served: map[string]string{admissionTypes: validatingTypes}, enable: []string{"MutatingAdmissionPolicy"},
			isFair: true, failure: "--enable-admission-plugins has MutatingAdmissionPolicy",
		},
		"invalid":          {served: map[string]string{admissionTypes: "invalid", flowTypes: flowSchemas}, isFair: true, failure: "reading the types of admissionregistration.k8s.io/v1"},
		"nothing is there": {served: map[string]string{}, isFair: true, failure: "does not list admissionregistration.k8s.io/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			recommended := genericoptions.NewRecommendedOptions("/", nil)
			recommended.CoreAPI.CoreAPIKubeconfigPath = cluster(t, func() map[string]string { return test.served })
			recommended.Admission.EnablePlugins, recommended.Admission.DisablePlugins = test.enable, test.disable
			original := *recommended
			_, err := omitUnserved(t.Context(), recommended)
			if test.failure == "" && err != nil || test.failure != "" && (err == nil || !strings.Contains(err.Error(), test.failure)) {
				t.Fatalf("error %v, want %q", err, test.failure)
			}
			if got := recommended.Admission.DisablePlugins; !slices.Equal(got, test.want) {
				t.Errorf("disabled plugins %q, want %q", got, test.want)
			}
			if got := recommended.Features.EnablePriorityAndFairness; got != test.isFair {
				t.Errorf("priority and fairness is %v, want %v", got, test.isFair)
			}
			if !slices.Equal(original.Admission.DisablePlugins, test.disable) || !original.Features.EnablePriorityAndFairness {
				t.Error("the options of the caller were changed")
			}
		})
	}
}

// TestWaitUntilServed upgrades a cluster whose API servers of both versions respond in turn first.
func TestWaitUntilServed(t *testing.T) {
	older := map[string]string{admissionTypes: validatingTypes, flowTypes: flowSchemas}
	newer := map[string]string{admissionTypes: allTypes, flowTypes: flowSchemas}
	var readings atomic.Int64
	upgraded := atomic.Bool{}
	recommended := genericoptions.NewRecommendedOptions("/", nil)
	recommended.CoreAPI.CoreAPIKubeconfigPath = cluster(t, func() map[string]string {
		// Each reading makes several requests.
		if upgraded.Load() || readings.Add(1)%10 > 5 {
			return newer
		}
		return older
	})
	off, err := omitUnserved(t.Context(), recommended)
	if err != nil || !slices.Equal(off.names, []string{"MutatingAdmissionPolicy"}) {
		t.Fatalf("off is %+v, error %v", off, err)
	}
	off.period = time.Millisecond
	ended := make(chan bool)
	go func() { ended <- off.WaitUntilServed(t.Context()) }()
	for readings.Load() < 100 {
		select {
		case <-ended:
			t.Fatal("the wait has ended while both versions respond")
		case <-time.After(time.Millisecond):
		}
	}
	upgraded.Store(true)
	if !<-ended {
		t.Error("the types are not served")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if off.WaitUntilServed(ctx) || (&Unserved{}).WaitUntilServed(t.Context()) || (*Unserved)(nil).WaitUntilServed(t.Context()) {
		t.Error("the wait says that types are served that were not off, or after its end")
	}
}

// cluster returns the kubeconfig of a server with the types of versions, by path.
func cluster(t *testing.T, served func() map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		now := served()
		if r.URL.Path == "/apis" {
			_, _ = fmt.Fprintf(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [%s]}`, strings.Join(groups(now), ", "))
			return
		}
		types, ok := now[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `{"kind": "APIResourceList", "apiVersion": "v1", "resources": [%s]}`, types)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf("{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}",
		server.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// groups returns the API groups of paths.
func groups(served map[string]string) []string {
	var groups []string
	for path := range served {
		version := strings.TrimPrefix(path, "/apis/")
		group, _, _ := strings.Cut(version, "/")
		groups = append(groups, fmt.Sprintf(`{"name": %q, "versions": [{"groupVersion": %q, "version": "v1"}]}`, group, version))
	}
	return groups
}
