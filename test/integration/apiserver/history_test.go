// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
)

// historyKept is the compaction interval of the server of TestHistory. It is longer than an informer takes to reconnect on a busy machine.
const historyKept = time.Minute

// uncached is a kind without a watch cache, which keeps events longer than the store.
const uncached = "clusterwatchrules"

// TestHistory tests from which resource versions clients can resume, and the errors otherwise.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Server: true, ServerArgs: []string{
		"--etcd-compaction-interval=" + historyKept.String(), "--watch-cache-sizes=" + uncached + ".configbutler.ai#0",
	}})
	for _, each := range []struct {
		name string
		test func(*testing.T, *testCluster)
	}{
		{"StoreMetrics", testStoreMetrics},
		{"CompactedHistory", testCompactedHistory},
		{"DisconnectedInformer", testDisconnectedInformer},
	} {
		t.Run(each.name, func(t *testing.T) { each.test(t, s) })
	}
}

// storeMetrics returns the metrics of the store of objects.
func (s *testCluster) storeMetrics(ctx context.Context) (map[string]float64, error) {
	config, err := s.Admin().RESTConfig()
	if err != nil {
		return nil, err
	}
	config.Host = s.Env("SERVER_URL")
	config.TLSClientConfig.Insecure, config.CAData, config.CAFile = true, nil, ""
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	text, err := client.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), " ")
		if found && strings.HasPrefix(name, "slipstream_storage_") && strings.Contains(name, `store="api"`) {
			if values[strings.Replace(name, `store="api"`, "", 1)], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

func testStoreMetrics(t *testing.T, s *testCluster) {
	before, err := s.storeMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"size_bytes{}", "free_bytes{}", "keys{}", "leases{}", "revision{}", "compact_revision{}", "watchers{}", "watcher_lag_revisions{}",
		"commit_duration_seconds_count{}", "commit_requests_sum{}", "compaction_duration_seconds_count{}",
		`write_failures_total{reason="disk_full",}`, `write_failures_total{reason="io",}`, `write_failures_total{reason="refused",}`,
	} {
		if _, found := before["slipstream_storage_"+name]; !found {
			t.Errorf("metric slipstream_storage_%s is missing in %v", name, before)
		}
	}
	namespace := s.namespace(t, "measured")
	s.Apply(t, repositoryIn(namespace))
	after, err := s.storeMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"keys{}", "revision{}", "commit_duration_seconds_count{}", "commit_requests_sum{}"} {
		if name = "slipstream_storage_" + name; after[name] <= before[name] {
			t.Errorf("%s = %v after a write, %v before", name, after[name], before[name])
		}
	}
	if after["slipstream_storage_watchers{}"] == 0 {
		t.Error("the watch cache is not counted as a watcher")
	}
}

// label changes a label of an object and returns the new resourceVersion.
func (s *testCluster) label(t *testing.T, client dynamic.ResourceInterface, name, value string) string {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"round":%q}}}`, value)
	changed, err := client.Patch(t.Context(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return changed.GetResourceVersion()
}

// expectRounds reads events until the last of these label values, after the value last. Each must be sent once and in order; status
// updates of the server may be in between.
func expectRounds(t *testing.T, w watch.Interface, last string, rounds ...string) {
	t.Helper()
	for len(rounds) > 0 {
		event := next(t, w)
		if event.Type == watch.Bookmark {
			continue
		}
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != watch.Modified {
			t.Fatalf("got %s %v, want round %s", event.Type, event.Object, rounds[0])
		}
		switch round := obj.GetLabels()["round"]; round {
		case rounds[0]:
			last, rounds = round, rounds[1:]
		case last: // A change of another field.
		default:
			t.Fatalf("got round %q after %q, want %q", round, last, rounds[0])
		}
	}
}

// testResumeAfterRestart kills the server, and resumes a watch at a version before. The server's compaction interval is the default, which
// is longer than any restart.
func testResumeAfterRestart(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "resumed")
	s.Apply(t, repositoryIn(namespace))
	repositories := s.client.Resource(resource("gitrepoconfigs")).Namespace(namespace)
	from := s.label(t, repositories, "repo", "0")
	s.label(t, repositories, "repo", "1")
	s.label(t, repositories, "repo", "2")
	s.restart(t, syscall.SIGKILL)
	w, err := repositories.Watch(t.Context(), metav1.ListOptions{ResourceVersion: from, LabelSelector: "round"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.label(t, repositories, "repo", "3")
	expectRounds(t, w, "0", "1", "2", "3")
}

// waitForCompaction waits until a resource version is compacted.
func (s *testCluster) waitForCompaction(t *testing.T, resourceVersion string) {
	t.Helper()
	version, err := strconv.ParseFloat(resourceVersion, 64)
	if err != nil {
		t.Fatal(err)
	}
	testkit.EventuallyWithin(t, deadline, "a compaction", func(ctx context.Context) error {
		values, err := s.storeMetrics(ctx)
		if compacted := values["slipstream_storage_compact_revision{}"]; err == nil && compacted <= version {
			err = fmt.Errorf("compacted revision %v, want more than %v", compacted, version)
		}
		return err
	})
}

func testCompactedHistory(t *testing.T, s *testCluster) {
	for _, name := range []string{"past-a", "past-b", "past-c"} {
		s.Apply(t, clusterRuleFor(name))
	}
	rules := s.client.Resource(resource(uncached))
	page, err := rules.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.label(t, rules, "past-a", "1")
	s.label(t, rules, "past-a", "2") // Only revisions before the last change are compacted.
	s.waitForCompaction(t, page.GetResourceVersion())

	w, err := rules.Watch(t.Context(), metav1.ListOptions{ResourceVersion: page.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	event := next(t, w)
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watch from a compacted revision got %s %v, want 410", event.Type, event.Object)
	}

	_, err = rules.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: page.GetContinue()})
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		t.Fatalf("list continued at a compacted revision: %v, want 410", err)
	}
	rest, err := rules.List(t.Context(), metav1.ListOptions{Continue: status.Status().Continue})
	if err != nil || len(rest.Items) != 2 {
		t.Errorf("list continued at the current revision has %v, error %v; want the other two objects", rest, err)
	}
}

// testDisconnectedInformer disconnects an informer while objects change.
func testDisconnectedInformer(t *testing.T, s *testCluster) {
	conns := &connections{}
	config, err := s.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Dial, config.WrapTransport = conns.dial, conns.count
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	rules := s.client.Resource(resource(uncached))
	s.Apply(t, clusterRuleFor("kept"))
	s.Apply(t, clusterRuleFor("deleted"))
	informer := startInformer(t, client)
	// A reflector lists again if its watch ends immediately without an event.
	s.label(t, rules, "kept", "before")
	testkit.EventuallyWithin(t, deadline, "the informer to watch", holdsRound(informer, "kept", "before"))
	before := conns.lists.Load()
	if before == 0 {
		t.Fatal("no initial list was counted")
	}
	conns.cut(true)
	s.label(t, rules, "kept", "short")
	conns.cut(false)
	testkit.EventuallyWithin(t, deadline, "the informer to resume", holdsRound(informer, "kept", "short"))
	if listed := conns.lists.Load(); listed != before {
		t.Errorf("informer has listed %d times, want %d as before, because the missed events are in the history", listed, before)
	}

	conns.cut(true)
	if err := rules.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	missed := s.label(t, rules, "kept", "long")
	s.label(t, rules, "kept", "longer") // Only revisions before the last change are compacted.
	s.waitForCompaction(t, missed)
	conns.cut(false)
	testkit.EventuallyWithin(t, deadline, "the informer to list again", func(context.Context) error {
		if _, found, _ := informer.GetStore().GetByKey("deleted"); found {
			return errors.New("deleted object is in the store")
		}
		return nil
	})
	testkit.EventuallyWithin(t, deadline, "the informer to be up to date", holdsRound(informer, "kept", "longer"))
	if listed := conns.lists.Load(); listed <= before {
		t.Errorf("informer has listed %d times, want more than the %d before", listed, before)
	}
}

func startInformer(t *testing.T, client dynamic.Interface) cache.SharedIndexInformer {
	t.Helper()
	rules := client.Resource(resource(uncached))
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return rules.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return rules.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("informer did not sync")
	}
	return informer
}

func holdsRound(informer cache.SharedIndexInformer, name, round string) func(context.Context) error {
	return func(context.Context) error {
		held, found, err := informer.GetStore().GetByKey(name)
		if err != nil || !found {
			return fmt.Errorf("%s found: %v, error %w", name, found, err)
		}
		if got := held.(*unstructured.Unstructured).GetLabels()["round"]; got != round {
			return fmt.Errorf("round of %s = %q", name, got)
		}
		return nil
	}
}
