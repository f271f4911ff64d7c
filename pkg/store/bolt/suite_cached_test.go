// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// cachedFixture is upstream's watch cache over upstream's store, as a server with an engine uses it.
type cachedFixture struct {
	*bolt.Resumable
	store *storeFixture
}

// cacheOptions are the options that differ between tests of the suite.
type cacheOptions struct {
	clusterScoped, indexed bool
	transformer            *breakableTransformer
	// window is the minimum time that the cache keeps events, clock measures it. Both default to upstream's.
	window time.Duration
	clock  clock.WithTicker
}

func (b backend) newCache(t testing.TB, o cacheOptions) *cachedFixture {
	t.Helper()
	fixture := fixtureOptions{prefix: "/registry", transformer: identity.NewEncryptCheckTransformer()}
	if o.transformer != nil {
		fixture.transformer = o.transformer
	}
	store := b.newStore(t, fixture)
	watchCache, err := cacher.NewCacherFromConfig(o.config(store))
	if err != nil {
		t.Fatal(err)
	}
	if err := watchCache.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	delegator := cacher.NewCacheDelegator(watchCache, store.Interface)
	t.Cleanup(func() {
		delegator.Stop()
		watchCache.Stop()
	})
	return &cachedFixture{Resumable: bolt.NewResumable(delegator, store.Interface, store.revision), store: store}
}

func (o cacheOptions) config(store *storeFixture) cacher.Config {
	config := cacher.Config{
		Storage:             store.Interface,
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       podResource,
		EventsHistoryWindow: cacher.DefaultEventFreshDuration,
		ResourcePrefix:      "/pods/",
		KeyFunc:             func(o runtime.Object) (string, error) { return storage.NamespaceKeyFunc("/pods/", o) },
		GetAttrsFunc:        podAttributes,
		NewFunc:             newPod,
		NewListFunc:         newPodList,
		Codec:               store.codec,
		Clock:               pollingClock{},
	}
	if o.window > 0 {
		config.EventsHistoryWindow = o.window
	}
	if o.clock != nil {
		config.Clock, config.Storage = o.clock, unstamped{store.Interface}
	}
	if o.clusterScoped {
		config.KeyFunc = func(o runtime.Object) (string, error) { return storage.NoNamespaceKeyFunc("/pods/", o) }
	}
	if o.indexed {
		config.IndexerFuncs = storage.IndexerFuncs{"spec.nodeName": func(o runtime.Object) string { return o.(*example.Pod).Spec.NodeName }}
		config.Indexers = &cache.Indexers{
			"f:spec.nodeName":      func(o any) ([]string, error) { return []string{o.(*example.Pod).Spec.NodeName}, nil },
			"f:metadata.namespace": func(o any) ([]string, error) { return []string{o.(*example.Pod).Namespace}, nil },
		}
	}
	return config
}

func podAttributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*example.Pod)
	if !ok {
		return nil, nil, errors.New("not a pod")
	}
	return pod.Labels, fields.Set{
		"metadata.name":      pod.Name,
		"metadata.namespace": pod.Namespace,
		"spec.nodeName":      pod.Spec.NodeName,
		"spec.restartPolicy": string(pod.Spec.RestartPolicy),
		"status.phase":       string(pod.Status.Phase),
	}, nil
}

// pollingClock is the real clock, except that the watch cache polls for compactions every few milliseconds instead of every
// 15 seconds.
type pollingClock struct{ clock.RealClock }

const (
	upstreamCompactionPoll = 15 * time.Second
	testCompactionPoll     = 5 * time.Millisecond
)

func (c pollingClock) NewTimer(d time.Duration) clock.Timer {
	if d == upstreamCompactionPoll {
		return pollingTimer{c.RealClock.NewTimer(testCompactionPoll)}
	}
	return c.RealClock.NewTimer(d)
}

type pollingTimer struct{ clock.Timer }

func (t pollingTimer) Reset(time.Duration) bool { return t.Timer.Reset(testCompactionPoll) }

// compact compacts the store and waits until the watch cache has observed it.
func (f *cachedFixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	f.store.compact(ctx, t, resourceVersion)
	testkit.EventuallyTrue(t, "the watch cache observes the compaction", func() bool {
		return f.CompactRevision() == f.store.CompactRevision()
	})
}

// settledCreate waits after a create until the cache has received it.
type settledCreate struct{ *cachedFixture }

func (s settledCreate) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.cachedFixture.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	seen := storage.GetOptions{ResourceVersion: out.(*example.Pod).ResourceVersion}
	return s.Get(ctx, key, seen, newPod())
}

func (b backend) onCache(test storeTest) func(*testing.T) { return b.onCacheWith(cacheOptions{}, test) }

func (b backend) onCacheWith(o cacheOptions, test storeTest) func(*testing.T) {
	return func(t *testing.T) { test(t.Context(), t, b.newCache(t, o)) }
}

func (b backend) onSettledCache(test storeTest) func(*testing.T) {
	return func(t *testing.T) { test(t.Context(), t, settledCreate{b.newCache(t, cacheOptions{})}) }
}

// noStorageCheck and noCallCheck disable checks that do not apply to the cache: it passes writes through unchanged and
// serves lists itself.
func noStorageCheck(context.Context, *testing.T, string) {}
func noCallCheck(*testing.T, uint64, uint64)             {}

// cachedTests returns upstream's suite for the watch cache, as upstream runs it.
func (b backend) cachedTests() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"RunTestCreate": func(t *testing.T) {
			storagetesting.RunTestCreate(t.Context(), t, b.newCache(t, cacheOptions{}), noStorageCheck)
		},
		"RunTestCreateWithTTL":                              b.onCache(storagetesting.RunTestCreateWithTTL),
		"RunTestCreateWithKeyExist":                         b.onCache(storagetesting.RunTestCreateWithKeyExist),
		"RunTestGet":                                        b.onCache(storagetesting.RunTestGet),
		"RunTestUnconditionalDelete":                        b.onCache(storagetesting.RunTestUnconditionalDelete),
		"RunTestConditionalDelete":                          b.onCache(storagetesting.RunTestConditionalDelete),
		"RunTestDeleteWithSuggestion":                       b.onCache(storagetesting.RunTestDeleteWithSuggestion),
		"RunTestDeleteWithSuggestionAndConflict":            b.onCache(storagetesting.RunTestDeleteWithSuggestionAndConflict),
		"RunTestDeleteWithSuggestionOfDeletedObject":        b.onCache(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
		"RunTestValidateDeletionWithSuggestion":             b.onCache(storagetesting.RunTestValidateDeletionWithSuggestion),
		"RunTestValidateDeletionWithOnlySuggestionValid":    b.onCache(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
		"RunTestDeleteWithConflict":                         b.onCache(storagetesting.RunTestDeleteWithConflict),
		"RunTestPreconditionalDeleteWithSuggestion":         b.onCache(storagetesting.RunTestPreconditionalDeleteWithSuggestion),
		"RunTestPreconditionalDeleteWithOnlySuggestionPass": b.onCache(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
		"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError": deletingCorrupt(func(t *testing.T) {
			transformer := &breakableTransformer{Transformer: identity.NewEncryptCheckTransformer()}
			f := b.newCache(t, cacheOptions{transformer: transformer})
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(t.Context(), t, f, transformer.broken.Store)
		}),
		"RunTestDeleteExpectedTransformOrDecodeError": deletingCorrupt(b.testCachedDeleteCorrupt),
		"RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError": deletingCorrupt(func(t *testing.T) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(t.Context(), t, b.newCache(t, cacheOptions{}))
		}),
		"RunTestListPaging":             b.onCache(storagetesting.RunTestListPaging),
		"RunTestGetListRecursivePrefix": b.onCache(storagetesting.RunTestGetListRecursivePrefix),
		"RunTestKeySchema":              b.onCache(storagetesting.RunTestKeySchema),
		"RunTestNamespaceScopedList":    b.onCacheWith(cacheOptions{indexed: true}, storagetesting.RunTestNamespaceScopedList),
		"RunTestGetListNonRecursive": withGates(features.ListFromCacheSnapshot, func(t *testing.T) {
			f := b.newCache(t, cacheOptions{})
			storagetesting.RunTestGetListNonRecursive(t.Context(), t, f.store.increaseRevision, f)
		}),
		"RunTestList": withGates(features.ListFromCacheSnapshot, func(t *testing.T) {
			f := b.newCache(t, cacheOptions{})
			storagetesting.RunTestList(t.Context(), t, f, f.compact, true, f.store.lists)
		}),
		"RunTestConsistentList": withGates(features.ListFromCacheSnapshot, func(t *testing.T) {
			f := b.newCache(t, cacheOptions{})
			snapshots := gateEnabled(features.ListFromCacheSnapshot)
			storagetesting.RunTestConsistentList(t.Context(), t, f, f.store.increaseRevision, true, true, snapshots)
		}),
		"RunTestCompactRevision": func(t *testing.T) {
			setGate(t, features.ListFromCacheSnapshot, true)
			f := b.newCache(t, cacheOptions{})
			storagetesting.RunTestCompactRevision(t.Context(), t, f, f.store.increaseRevision, f.compact)
		},
		"RunTestListContinuation": func(t *testing.T) {
			storagetesting.RunTestListContinuation(t.Context(), t, b.newCache(t, cacheOptions{}), noCallCheck)
		},
		"RunTestListPaginationRareObject": func(t *testing.T) {
			storagetesting.RunTestListPaginationRareObject(t.Context(), t, b.newCache(t, cacheOptions{}), noCallCheck)
		},
		"RunTestListContinuationWithFilter": func(t *testing.T) {
			storagetesting.RunTestListContinuationWithFilter(t.Context(), t, b.newCache(t, cacheOptions{}), noCallCheck)
		},
		"RunTestGuaranteedUpdateWithTTL":                   b.onCache(storagetesting.RunTestGuaranteedUpdateWithTTL),
		"RunTestGuaranteedUpdateWithConflict":              b.onCache(storagetesting.RunTestGuaranteedUpdateWithConflict),
		"RunTestGuaranteedUpdateWithSuggestionAndConflict": b.onCache(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		"RunTestStats": withGates(features.SizeBasedListCostEstimate, func(t *testing.T) {
			f := b.newCache(t, cacheOptions{})
			sized := gateEnabled(features.SizeBasedListCostEstimate)
			storagetesting.RunTestStats(t.Context(), t, f, f.store.codec, f.store.transformer, sized)
		}),

		"RunTestWatch":                              b.onCache(storagetesting.RunTestWatch),
		"RunTestDeleteTriggerWatch":                 b.onCache(storagetesting.RunTestDeleteTriggerWatch),
		"RunTestWatchFromNonZero":                   b.onCache(storagetesting.RunTestWatchFromNonZero),
		"RunTestDelayedWatchDelivery":               b.onCache(storagetesting.RunTestDelayedWatchDelivery),
		"RunTestWatcherTimeout":                     b.onCache(storagetesting.RunTestWatcherTimeout),
		"RunTestWatchDeleteEventObjectHaveLatestRV": b.onCache(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		"RunTestWatchInitializationSignal":          b.onCache(storagetesting.RunTestWatchInitializationSignal),
		"RunTestClusterScopedWatch": b.onCacheWith(cacheOptions{clusterScoped: true, indexed: true},
			storagetesting.RunTestClusterScopedWatch),
		"RunTestNamespaceScopedWatch": b.onCacheWith(cacheOptions{indexed: true}, storagetesting.RunTestNamespaceScopedWatch),
		"RunTestWatchFromZero": func(t *testing.T) {
			// No compaction: upstream's needs an unexported hook of the cache.
			storagetesting.RunTestWatchFromZero(t.Context(), t, b.newCache(t, cacheOptions{}), nil)
		},
		"RunTestWatchDispatchBookmarkEvents": func(t *testing.T) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(t.Context(), t, b.newCache(t, cacheOptions{}), true)
		},
		"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": b.onCache(
			storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
		"RunSendInitialEventsBackwardCompatibility": b.onCache(storagetesting.RunSendInitialEventsBackwardCompatibility),
		"RunWatchSemantics":                         b.onSettledCache(storagetesting.RunWatchSemantics),
		"RunWatchSemanticInitialEventsExtended":     b.onSettledCache(storagetesting.RunWatchSemanticInitialEventsExtended),
		"RunWatchListMatchSingle":                   b.onSettledCache(storagetesting.RunWatchListMatchSingle),
	}
}

// Reasons why a test of the suite is not run on the cache.
const (
	upstreamSkips = "upstream skips it for the cache: the test changes the transformer under the store, or relies on pages of the store"
	belowTheCache = "upstream runs it on the store only: it tests behavior below the cache"
	cacheDiffers  = "upstream skips it for the cache, which closes a watch whose context has ended differently"
)

var cachedSkips = map[string]string{
	"RunTestListInconsistentContinuation":     upstreamSkips,
	"RunTestListResourceVersionMatch":         upstreamSkips,
	"RunTestGuaranteedUpdate":                 upstreamSkips,
	"RunTestGuaranteedUpdateChecksStoredData": upstreamSkips,
	"RunTestTransformationFailure":            upstreamSkips,
	"RunTestWatchError":                       upstreamSkips,
	"RunTestWatchContextCancel":               cacheDiffers,
	"RunTestGetListWithErrorAggregation":      belowTheCache,
	"RunTestGetListWithoutErrorAggregation":   belowTheCache,
	"RunOptionalTestProgressNotify":           belowTheCache,
	"RunTestWatchWithUnsafeDelete":            belowTheCache,
	"RunWatchErrorIsBlockingFurtherEvents":    belowTheCache,
}

func (b backend) testCachedDeleteCorrupt(t *testing.T) {
	t.Run("transform", func(t *testing.T) {
		transformer := &breakableTransformer{Transformer: identity.NewEncryptCheckTransformer()}
		f := b.newCache(t, cacheOptions{transformer: transformer})
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(t.Context(), t, f, transformer.broken.Store)
	})
	t.Run("decode", func(t *testing.T) {
		// The test needs objects that cannot be decoded; upstream panics on them in tests.
		etcd3.TestOnlySetFatalOnDecodeError(t, false)
		f := b.newCache(t, cacheOptions{})
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(t.Context(), t, f, f.store.codec.broken.Store)
	})
}

func TestUpstreamSuiteUnderWatchCache(t *testing.T) { runSuite(t, backend.cachedTests) }
