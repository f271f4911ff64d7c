// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discoveryServer answers as a kube-apiserver does, with documents recorded from one (testdata). It had the custom
// resources widgets (v1 and v1beta1, namespaced) and gadgets (v1beta1 only) of example.com, and an APIService
// v1beta1.metrics.k8s.io without endpoints.
type discoveryServer struct {
	mutex     sync.Mutex
	documents map[string]*apidiscovery.APIGroupDiscoveryList
	status    int
	requests  int
}

// newDiscoveryServer returns the server and a real client of it.
func newDiscoveryServer(t *testing.T) (*discoveryServer, *discovery.DiscoveryClient) {
	t.Helper()
	s := &discoveryServer{status: http.StatusOK, documents: map[string]*apidiscovery.APIGroupDiscoveryList{
		"/api": readDocument(t, "testdata/api.json"), "/apis": readDocument(t, "testdata/apis.json"),
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func readDocument(t *testing.T, path string) *apidiscovery.APIGroupDiscoveryList {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document := &apidiscovery.APIGroupDiscoveryList{}
	if err := json.Unmarshal(content, document); err != nil {
		t.Fatal(err)
	}
	return document
}

func (s *discoveryServer) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests++
	if s.status != http.StatusOK {
		http.Error(response, "not now", s.status)
		return
	}
	document, ok := s.documents[request.URL.Path]
	if !ok {
		http.NotFound(response, request)
		return
	}
	response.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(response).Encode(document)
}

// edit changes what is served.
func (s *discoveryServer) edit(change func(apis *apidiscovery.APIGroupDiscoveryList)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(s.documents["/apis"])
}

func (s *discoveryServer) answer(status int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.status = status
}

func (s *discoveryServer) asked() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.requests
}

func withoutGroup(name string) func(*apidiscovery.APIGroupDiscoveryList) {
	return func(apis *apidiscovery.APIGroupDiscoveryList) {
		apis.Items = slices.DeleteFunc(apis.Items, func(group apidiscovery.APIGroupDiscovery) bool { return group.Name == name })
	}
}

func withoutResource(groupName, resource string) func(*apidiscovery.APIGroupDiscoveryList) {
	return inVersions(groupName, func(version *apidiscovery.APIVersionDiscovery) {
		version.Resources = slices.DeleteFunc(version.Resources, func(r apidiscovery.APIResourceDiscovery) bool {
			return r.Resource == resource
		})
	})
}

// stale is what the aggregator makes of a group version whose server does not answer.
func stale(groupName, versionName string) func(*apidiscovery.APIGroupDiscoveryList) {
	return inVersions(groupName, func(version *apidiscovery.APIVersionDiscovery) {
		if version.Version == versionName {
			version.Freshness, version.Resources = apidiscovery.DiscoveryFreshnessStale, nil
		}
	})
}

func inVersions(groupName string, change func(*apidiscovery.APIVersionDiscovery)) func(*apidiscovery.APIGroupDiscoveryList) {
	return func(apis *apidiscovery.APIGroupDiscoveryList) {
		for i := range apis.Items {
			for j := range apis.Items[i].Versions {
				if apis.Items[i].Name == groupName {
					change(&apis.Items[i].Versions[j])
				}
			}
		}
	}
}

// withGroup adds a group with one version of namespaced resources that can be listed and watched.
func withGroup(name, version string, resources ...string) func(*apidiscovery.APIGroupDiscoveryList) {
	served := apidiscovery.APIVersionDiscovery{Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
	for _, resource := range resources {
		served.Resources = append(served.Resources, apidiscovery.APIResourceDiscovery{
			Resource: resource, Scope: apidiscovery.ScopeNamespace, ResponseKind: &metav1.GroupVersionKind{Kind: "Kind-of-" + resource},
			Verbs: []string{"get", "list", "watch"},
		})
	}
	return func(apis *apidiscovery.APIGroupDiscoveryList) {
		apis.Items = append(apis.Items, apidiscovery.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscovery.APIVersionDiscovery{served},
		})
	}
}
