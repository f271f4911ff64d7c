// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/test/testkit"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	services    = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gadgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "gadgets"}
)

// catalogueFixture is a running catalogue of a discoveryServer and a cluster's metadata.
type catalogueFixture struct {
	*watch.Types
	server   *discoveryServer
	metadata *fake.FakeMetadataClient
	touches  int

	mutex     sync.Mutex
	published []*watch.Snapshot
}

// runCatalogue runs a catalogue that asks again for a cause only.
func runCatalogue(t *testing.T) *catalogueFixture {
	t.Helper()
	server, discoverer := newDiscoveryServer(t)
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &catalogueFixture{server: server, metadata: fake.NewSimpleMetadataClient(scheme)}
	var err error
	if f.Types, err = watch.NewTypes(discoverer, f.metadata, time.Hour); err != nil {
		t.Fatal(err)
	}
	f.Subscribe(func(snapshot *watch.Snapshot) {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.published = append(f.published, snapshot)
	})
	run(t, f.Run)
	testkit.EventuallyTrue(t, "the first discovery", func() bool { return f.Snapshot() != nil })
	return f
}

// run runs f until the test ends, and waits for it.
func run(t *testing.T, f func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Background()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (f *catalogueFixture) publications() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.published)
}

func (f *catalogueFixture) declare(t *testing.T, resource schema.GroupVersionResource, name string) {
	t.Helper()
	if err := f.metadata.Tracker().Create(resource, declaration(resource, name), ""); err != nil {
		t.Fatal(err)
	}
}

func declaration(resource schema.GroupVersionResource, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: resource.GroupVersion().String(), Kind: "Declaration"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

func (f *catalogueFixture) withdraw(t *testing.T, resource schema.GroupVersionResource, name string) {
	t.Helper()
	if err := f.metadata.Tracker().Delete(resource, "", name); err != nil {
		t.Fatal(err)
	}
}

// discoverAgain waits until a discovery that began after the call has been taken in.
func (f *catalogueFixture) discoverAgain(t *testing.T) {
	t.Helper()
	// Two rounds of two requests each: the first may have been under way.
	wanted := f.server.asked() + 4
	testkit.EventuallyTrue(t, "another discovery", func() bool {
		f.touch(t)
		return f.server.asked() >= wanted
	})
}

// touch changes an APIService whose group version is served all the time.
func (f *catalogueFixture) touch(t *testing.T) {
	t.Helper()
	const name = "v1.apps"
	if f.touches == 0 {
		f.declare(t, services, name)
	}
	f.touches++
	object := declaration(services, name)
	object.ResourceVersion = strconv.Itoa(f.touches)
	if err := f.metadata.Tracker().Update(services, object, ""); err != nil {
		t.Fatal(err)
	}
}

func (f *catalogueFixture) has(resource schema.GroupVersionResource) bool {
	_, ok := f.typeOf(resource)
	return ok
}

// typeOf looks a type up that can be watched.
func (f *catalogueFixture) typeOf(resource schema.GroupVersionResource) (watch.Type, bool) {
	return typeOf(f.Snapshot(), resource)
}

func typeOf(snapshot *watch.Snapshot, resource schema.GroupVersionResource) (watch.Type, bool) {
	types, _ := snapshot.Resolve(watch.Selection{
		APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource},
	}, watch.Policy{})
	if len(types) != 1 {
		return watch.Type{}, false
	}
	return types[0], true
}

func TestCatalogueReadsARealDiscoveryDocument(t *testing.T) {
	snapshot := runCatalogue(t).Snapshot()
	for name, want := range map[string]watch.Type{
		"core": {
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Kind:     "ConfigMap", Namespaced: true, Preferred: true, Watchable: true,
		},
		"cluster scope": {
			Resource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
			Kind:     "ClusterRole", Preferred: true, Watchable: true,
		},
		"preferred version": {
			Resource: schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
			Kind:     "HorizontalPodAutoscaler", Namespaced: true, Preferred: true, Watchable: true,
		},
		"another version": {
			Resource: schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"},
			Kind:     "HorizontalPodAutoscaler", Namespaced: true, Watchable: true,
		},
		"not in the group's preferred version": {
			Resource: gadgets, Kind: "Gadget", Preferred: true, Watchable: true,
		},
	} {
		if got, ok := typeOf(snapshot, want.Resource); !ok || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, ok, want)
		}
	}
	if !snapshot.GroupFailed("metrics.k8s.io") || snapshot.GroupFailed("apps") {
		t.Error("GroupFailed: want metrics.k8s.io and not apps")
	}
}

func TestCatalogueKeepsTypesOfAGroupThatCannotBeDiscovered(t *testing.T) {
	f := runCatalogue(t)
	before := discoveryErrors(t)

	f.server.edit(stale("example.com", "v1"))
	f.discoverAgain(t)
	testkit.EventuallyTrue(t, "widgets to be stale", func() bool { got, _ := f.typeOf(widgets); return got.Stale })

	got, _ := f.typeOf(widgets)
	if !got.Preferred {
		t.Error("the stale version is no longer preferred: its watch would move to another version")
	}
	beta, _ := f.typeOf(schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"})
	if beta.Preferred || beta.Stale {
		t.Errorf("the version that still answers: got %+v, want neither preferred nor stale", beta)
	}
	testkit.EventuallyTrue(t, "the failure to be counted", func() bool { return discoveryErrors(t) > before })
}

func TestCatalogueKeepsEverythingWhileDiscoveryIsDown(t *testing.T) {
	f := runCatalogue(t)
	asked, failures := f.server.asked(), discoveryErrors(t)

	f.server.answer(http.StatusServiceUnavailable)
	testkit.EventuallyTrue(t, "a refusal", func() bool { return f.server.asked() > asked })
	f.server.edit(withoutGroup("metrics.k8s.io"))
	f.server.answer(http.StatusOK)
	testkit.EventuallyTrue(t, "recovery by the backoff alone", func() bool { return f.publications() > 1 })

	if snapshot := f.Snapshot(); f.publications() != 2 || snapshot.GroupFailed("metrics.k8s.io") || !f.has(widgets) {
		t.Error("the refusal made a snapshot")
	}
	if after := discoveryErrors(t); after <= failures {
		t.Errorf("slipstream_discovery_errors_total: got %v after %v, want more", after, failures)
	}
}

func TestCatalogueFollowsDefinitions(t *testing.T) {
	f := runCatalogue(t)
	added := schema.GroupVersionResource{Group: "new.example.com", Version: "v1", Resource: "things"}

	f.declare(t, definitions, "things.new.example.com")
	// Discovery shows the type some rounds after the definition: the catalogue has to ask again by itself.
	rounds := f.server.asked() + 6
	testkit.EventuallyTrue(t, "repeated discovery", func() bool { return f.server.asked() >= rounds })
	f.server.edit(withGroup("new.example.com", "v1", "things"))
	testkit.EventuallyTrue(t, "the new type", func() bool { return f.has(added) })

	f.withdraw(t, definitions, "things.new.example.com")
	f.server.edit(withoutGroup("new.example.com"))
	testkit.EventuallyTrue(t, "the type to go", func() bool { return !f.has(added) })
}

func TestCatalogueFollowsAPIServices(t *testing.T) {
	f := runCatalogue(t)
	added := schema.GroupVersionResource{Group: "aggregated.example.com", Version: "v1", Resource: "things"}

	f.server.edit(withGroup("aggregated.example.com", "v1", "things"))
	f.declare(t, services, "v1.aggregated.example.com")
	testkit.EventuallyTrue(t, "the new type", func() bool { return f.has(added) })

	// The group vanishes before its APIService does, as when the aggregator restarts.
	f.server.edit(withoutGroup("aggregated.example.com"))
	f.discoverAgain(t)
	testkit.EventuallyTrue(t, "the type to be stale", func() bool { got, _ := f.typeOf(added); return got.Stale })
	if !f.Snapshot().GroupFailed("aggregated.example.com") {
		t.Error("the group that vanished does not count as failed")
	}

	f.withdraw(t, services, "v1.aggregated.example.com")
	testkit.EventuallyTrue(t, "the type to go", func() bool { return !f.has(added) })
}

func TestCatalogueKeepsATypeWhoseDefinitionIsStillThere(t *testing.T) {
	f := runCatalogue(t)
	f.declare(t, definitions, "gadgets.example.com")
	f.discoverAgain(t)

	f.server.edit(withoutResource("example.com", "gadgets"))
	f.discoverAgain(t)
	testkit.EventuallyTrue(t, "gadgets to be stale", func() bool { got, _ := f.typeOf(gadgets); return got.Stale })

	f.withdraw(t, definitions, "gadgets.example.com")
	testkit.EventuallyTrue(t, "gadgets to go", func() bool { return !f.has(gadgets) })
}

func TestCatalogueDropsAVersionThatIsNoLongerServed(t *testing.T) {
	f := runCatalogue(t)
	f.declare(t, definitions, "widgets.example.com")
	f.discoverAgain(t)

	f.server.edit(func(apis *apidiscovery.APIGroupDiscoveryList) {
		stale("example.com", "v1")(apis)
		for i := range apis.Items {
			if apis.Items[i].Name == "example.com" {
				apis.Items[i].Versions = apis.Items[i].Versions[1:]
			}
		}
	})
	f.discoverAgain(t)
	testkit.EventuallyTrue(t, "v1 to go", func() bool { return !f.has(widgets) })
	beta, _ := f.typeOf(schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"})
	if !beta.Preferred {
		t.Errorf("the remaining version: got %+v, want it preferred", beta)
	}
}

func TestCataloguePublishesOnlyWhatDiffers(t *testing.T) {
	f := runCatalogue(t)
	first := f.Snapshot()
	f.discoverAgain(t)
	f.discoverAgain(t)
	if f.publications() != 1 || f.Snapshot() != first {
		t.Errorf("got %d snapshots, want the first one only", f.publications())
	}
}

func discoveryErrors(t *testing.T) float64 {
	t.Helper()
	return metrictest.Values(t)["discovery_errors_total"]
}
