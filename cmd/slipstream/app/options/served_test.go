// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// TestOmitUnserved checks what is turned off in clusters that serve fewer types.
func TestOmitUnserved(t *testing.T) {
	const admission, flowcontrol = "/apis/admissionregistration.k8s.io/v1", "/apis/flowcontrol.apiserver.k8s.io/v1"
	const both = `{"name": "validatingadmissionpolicies"}, {"name": "mutatingadmissionpolicies"}`
	for _, test := range []struct {
		name     string
		served   map[string]string
		disabled []string
		isFair   bool
		isError  bool
	}{
		{name: "all", served: map[string]string{admission: both, flowcontrol: `{"name": "flowschemas"}`}, isFair: true},
		{
			name:     "no mutating policies",
			served:   map[string]string{admission: `{"name": "validatingadmissionpolicies"}`, flowcontrol: `{"name": "flowschemas"}`},
			disabled: []string{"MutatingAdmissionPolicy"}, isFair: true,
		},
		{
			name: "neither", served: map[string]string{admission: `{"name": "validatingwebhookconfigurations"}`},
			disabled: []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"},
		},
		{name: "failure", served: map[string]string{admission: "invalid"}, isError: true, isFair: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			recommended := genericoptions.NewRecommendedOptions("/", nil)
			recommended.CoreAPI.CoreAPIKubeconfigPath = cluster(t, test.served)
			original := *recommended
			err := omitUnserved(t.Context(), recommended)
			if (err != nil) != test.isError {
				t.Fatalf("error %v", err)
			}
			if got := recommended.Admission.DisablePlugins; !slices.Equal(got, test.disabled) {
				t.Errorf("disabled plugins %q, want %q", got, test.disabled)
			}
			if got := recommended.Features.EnablePriorityAndFairness; got != test.isFair {
				t.Errorf("priority and fairness is %v, want %v", got, test.isFair)
			}
			if len(original.Admission.DisablePlugins) > 0 || !original.Features.EnablePriorityAndFairness {
				t.Error("the options of the caller were changed")
			}
		})
	}
}

// cluster returns the kubeconfig of a server with the resources of versions, by path.
func cluster(t *testing.T, served map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resources, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind": "APIResourceList", "apiVersion": "v1", "resources": [%s]}`, resources)
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
