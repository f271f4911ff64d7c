// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/component-base/featuregate"
)

// storeTest is a test of the suite that needs only a store.
type storeTest = func(context.Context, *testing.T, storage.Interface)

// onStore returns a test that runs on a fresh store.
func (b backend) onStore(test storeTest) func(*testing.T) {
	return func(t *testing.T) { test(t.Context(), t, b.newStore(t, fixtureOptions{})) }
}

// withGates runs a test with the feature gate disabled and enabled.
func withGates(feature featuregate.Feature, test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		for _, enabled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s=%v", feature, enabled), func(t *testing.T) {
				setGate(t, feature, enabled)
				test(t)
			})
		}
	}
}

// deletingCorrupt runs a test with unsafe deletion of corrupt objects allowed.
func deletingCorrupt(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		setGate(t, features.AllowUnsafeMalformedObjectDeletion, true)
		test(t)
	}
}

// frequentProgress returns options with an interval of progress notifications that is short enough for tests.
func frequentProgress() fixtureOptions {
	return fixtureOptions{progress: 100 * time.Millisecond}
}

// storeTests returns upstream's suite for the store alone, as upstream runs it.
func (b backend) storeTests() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"RunTestCreate": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestCreate(t.Context(), t, f, f.checkStored)
		},
		"RunTestCreateWithTTL":                              b.onStore(storagetesting.RunTestCreateWithTTL),
		"RunTestCreateWithKeyExist":                         b.onStore(storagetesting.RunTestCreateWithKeyExist),
		"RunTestGet":                                        b.onStore(storagetesting.RunTestGet),
		"RunTestUnconditionalDelete":                        b.onStore(storagetesting.RunTestUnconditionalDelete),
		"RunTestConditionalDelete":                          b.onStore(storagetesting.RunTestConditionalDelete),
		"RunTestDeleteWithSuggestion":                       b.onStore(storagetesting.RunTestDeleteWithSuggestion),
		"RunTestDeleteWithSuggestionAndConflict":            b.onStore(storagetesting.RunTestDeleteWithSuggestionAndConflict),
		"RunTestDeleteWithSuggestionOfDeletedObject":        b.onStore(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
		"RunTestValidateDeletionWithSuggestion":             b.onStore(storagetesting.RunTestValidateDeletionWithSuggestion),
		"RunTestValidateDeletionWithOnlySuggestionValid":    b.onStore(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
		"RunTestDeleteWithConflict":                         b.onStore(storagetesting.RunTestDeleteWithConflict),
		"RunTestPreconditionalDeleteWithSuggestion":         b.onStore(storagetesting.RunTestPreconditionalDeleteWithSuggestion),
		"RunTestPreconditionalDeleteWithOnlySuggestionPass": b.onStore(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
		"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError": deletingCorrupt(func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(t.Context(), t, f, f.codec.broken.Store)
		}),
		"RunTestDeleteExpectedTransformOrDecodeError": deletingCorrupt(b.testDeleteCorrupt),
		"RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError": deletingCorrupt(func(t *testing.T) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(t.Context(), t, b.newStore(t, fixtureOptions{}))
		}),
		"RunTestListPaging":             b.onStore(storagetesting.RunTestListPaging),
		"RunTestGetListRecursivePrefix": b.onStore(storagetesting.RunTestGetListRecursivePrefix),
		"RunTestKeySchema":              b.onStore(storagetesting.RunTestKeySchema),
		"RunTestNamespaceScopedList":    b.onStore(storagetesting.RunTestNamespaceScopedList),
		"RunTestGetListNonRecursive": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestGetListNonRecursive(t.Context(), t, f.increaseRevision, f)
		},
		"RunTestGetListWithErrorAggregation": deletingCorrupt(func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			store := overridable{etcd3.NewStoreWithUnsafeCorruptObjectDeletion(f.Interface, podResource), f.transformer}
			storagetesting.RunTestGetListWithErrorAggregation(t.Context(), t, store, corruptObjectError())
		}),
		"RunTestGetListWithoutErrorAggregation": func(t *testing.T) {
			setGate(t, features.AllowUnsafeMalformedObjectDeletion, false)
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestGetListWithoutErrorAggregation(t.Context(), t, overridable{f.Interface, f.transformer}, corruptObjectError())
		},
		"RunTestGuaranteedUpdate": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestGuaranteedUpdate(t.Context(), t, prefixed{f}, f.checkStored)
		},
		"RunTestGuaranteedUpdateWithTTL":                   b.onStore(storagetesting.RunTestGuaranteedUpdateWithTTL),
		"RunTestGuaranteedUpdateWithConflict":              b.onStore(storagetesting.RunTestGuaranteedUpdateWithConflict),
		"RunTestGuaranteedUpdateWithSuggestionAndConflict": b.onStore(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		"RunTestGuaranteedUpdateChecksStoredData": func(t *testing.T) {
			storagetesting.RunTestGuaranteedUpdateChecksStoredData(t.Context(), t, prefixed{b.newStore(t, fixtureOptions{})})
		},
		"RunTestTransformationFailure": func(t *testing.T) {
			storagetesting.RunTestTransformationFailure(t.Context(), t, prefixed{b.newStore(t, fixtureOptions{})})
		},
		"RunTestList": withGates(features.EtcdRangeStream, func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestList(t.Context(), t, f, f.compact, false, f.lists)
		}),
		"RunTestConsistentList": withGates(features.EtcdRangeStream, func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestConsistentList(t.Context(), t, f, f.increaseRevision, false, true, false)
		}),
		"RunTestCompactRevision": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestCompactRevision(t.Context(), t, f, f.increaseRevision, f.compact)
		},
		"RunTestListContinuation": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestListContinuation(t.Context(), t, f, f.checkCalls)
		},
		"RunTestListPaginationRareObject": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestListPaginationRareObject(t.Context(), t, f, f.checkCalls)
		},
		"RunTestListContinuationWithFilter": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestListContinuationWithFilter(t.Context(), t, f, f.checkCalls)
		},
		"RunTestListInconsistentContinuation": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestListInconsistentContinuation(t.Context(), t, f, f.compact)
		},
		"RunTestListResourceVersionMatch": func(t *testing.T) {
			storagetesting.RunTestListResourceVersionMatch(t.Context(), t, prefixed{b.newStore(t, fixtureOptions{})})
		},
		"RunTestStats": b.testStats,

		"RunTestWatch":                              b.onStore(storagetesting.RunTestWatch),
		"RunTestClusterScopedWatch":                 b.onStore(storagetesting.RunTestClusterScopedWatch),
		"RunTestNamespaceScopedWatch":               b.onStore(storagetesting.RunTestNamespaceScopedWatch),
		"RunTestDeleteTriggerWatch":                 b.onStore(storagetesting.RunTestDeleteTriggerWatch),
		"RunTestWatchFromNonZero":                   b.onStore(storagetesting.RunTestWatchFromNonZero),
		"RunTestDelayedWatchDelivery":               b.onStore(storagetesting.RunTestDelayedWatchDelivery),
		"RunTestWatchContextCancel":                 b.onStore(storagetesting.RunTestWatchContextCancel),
		"RunTestWatcherTimeout":                     b.onStore(storagetesting.RunTestWatcherTimeout),
		"RunTestWatchDeleteEventObjectHaveLatestRV": b.onStore(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		"RunTestWatchInitializationSignal":          b.onStore(storagetesting.RunTestWatchInitializationSignal),
		"RunSendInitialEventsBackwardCompatibility": b.onStore(storagetesting.RunSendInitialEventsBackwardCompatibility),
		"RunTestWatchFromZero": func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestWatchFromZero(t.Context(), t, f, f.compact)
		},
		"RunTestWatchError": func(t *testing.T) {
			storagetesting.RunTestWatchError(t.Context(), t, prefixed{b.newStore(t, fixtureOptions{})})
		},
		"RunWatchErrorIsBlockingFurtherEvents": func(t *testing.T) {
			storagetesting.RunWatchErrorIsBlockingFurtherEvents(t.Context(), t, prefixed{b.newStore(t, fixtureOptions{})})
		},
		"RunTestWatchWithUnsafeDelete": deletingCorrupt(func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			storagetesting.RunTestWatchWithUnsafeDelete(t.Context(), t, overridable{f.Interface, f.transformer}, corruptObjectError())
		}),
		"RunOptionalTestProgressNotify": func(t *testing.T) {
			f := b.newStore(t, frequentProgress())
			storagetesting.RunOptionalTestProgressNotify(t.Context(), t, f, f.increaseRevision)
		},
		"RunTestWatchDispatchBookmarkEvents": func(t *testing.T) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(t.Context(), t, b.newStore(t, frequentProgress()), false)
		},
		"RunWatchSemantics": withGates(features.EtcdRangeStream,
			withGates(features.ConcurrentWatchObjectDecode, b.onStore(storagetesting.RunWatchSemantics))),
		"RunWatchSemanticInitialEventsExtended": withGates(features.EtcdRangeStream,
			b.onStore(storagetesting.RunWatchSemanticInitialEventsExtended)),
		"RunWatchListMatchSingle": withGates(features.EtcdRangeStream, b.onStore(storagetesting.RunWatchListMatchSingle)),
	}
}

// storeSkips are the tests of the suite that do not apply to a store without a cache.
var storeSkips = map[string]string{
	"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": "the watch cache sends these bookmarks; " +
		"upstream does not run it on a store alone",
}

func (b backend) testDeleteCorrupt(t *testing.T) {
	t.Run("transform", func(t *testing.T) {
		f := b.newStore(t, fixtureOptions{})
		transformer := &breakableTransformer{Transformer: f.transformer.current()}
		f.transformer.replace(transformer)
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(t.Context(), t, f, transformer.broken.Store)
	})
	t.Run("decode", func(t *testing.T) {
		f := b.newStore(t, fixtureOptions{})
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(t.Context(), t, f, f.codec.broken.Store)
	})
}

func (b backend) testStats(t *testing.T) {
	for _, sized := range []bool{true, false} {
		t.Run(fmt.Sprintf("sized=%v", sized), func(t *testing.T) {
			f := b.newStore(t, fixtureOptions{})
			if sized {
				if err := f.EnableResourceSizeEstimation(f.storedKeys); err != nil {
					t.Fatal(err)
				}
			}
			storagetesting.RunTestStats(t.Context(), t, f, f.codec, f.transformer, sized)
		})
	}
}

func TestUpstreamSuite(t *testing.T) { runSuite(t, backend.storeTests) }

// runSuite runs the suite on the engine. A test that fails is run on etcd, too: if it fails on both, the cause is the harness or the suite.
// Others are not run on etcd. On a busy machine it sometimes sends an event without the previous value, which fails a test that says
// nothing about the engine.
func runSuite(t *testing.T, testsOf func(backend) map[string]func(*testing.T)) {
	t.Helper()
	runInChild(t, func() {
		comparison := testsOf(onEtcd)
		for name, test := range testsOf(onEngine) {
			if !t.Run("engine/"+name, test) {
				t.Run("etcd/"+name, comparison[name])
			}
		}
	})
}
