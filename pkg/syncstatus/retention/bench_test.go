// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/syncstatus/retention"
)

// BenchmarkSweep scans 100 000 records of 500 catalogs in one namespace, and archives and deletes all of them. It reports the live heap
// when the last page is read, and at the last deletion.
func BenchmarkSweep(b *testing.B) {
	const number = 100_000
	for b.Loop() {
		client := &fake.Clientset{}
		client.AddReactor("get", policies.Resource, func(clienttesting.Action) (bool, kruntime.Object, error) {
			return true, policy(), nil
		})
		client.AddReactor("update", policies.Resource, func(clienttesting.Action) (bool, kruntime.Object, error) {
			return true, policy(), nil
		})
		client.AddReactor("list", "appcatalogs", func(clienttesting.Action) (bool, kruntime.Object, error) {
			return true, &v1alpha1.AppCatalogList{}, nil
		})
		client.AddReactor("list", resource.Resource, pagesOf(number, func() { reportHeap(b, "MiB-looking") }))
		client.AddReactor("get", resource.Resource, func(action clienttesting.Action) (bool, kruntime.Object, error) {
			return true, byName(action.(clienttesting.GetAction).GetName()), nil
		})
		deletions := 0
		client.AddReactor("delete", resource.Resource, func(clienttesting.Action) (bool, kruntime.Object, error) {
			if deletions++; deletions == number {
				reportHeap(b, "MiB-deleting")
			}
			return true, nil, nil
		})
		folder := filepath.Join(b.TempDir(), "archive")
		sweeper := retention.New(retention.Config{Folder: folder, Period: time.Hour},
			&controller.Process{Client: client, Clock: forgettingClock{newInstantClock(), client}})
		if err := sweeper.Sweep(b.Context()); err != nil || deletions != number {
			b.Fatalf("%d deletions, error %v", deletions, err)
		}
	}
}

// forgettingClock is a clock that clears the recorded actions of a client in each pause.
type forgettingClock struct {
	*instantClock
	client *fake.Clientset
}

func (c forgettingClock) After(d time.Duration) <-chan time.Time {
	c.client.ClearActions()
	return c.instantClock.After(d)
}

func reportHeap(b *testing.B, unit string) {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.HeapAlloc)/(1<<20), unit)
}

// pagesOf returns the pages of a list of records. It calls atEnd at the last one.
func pagesOf(number int, atEnd func()) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, kruntime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		start, _ := strconv.Atoi(options.Continue)
		list := &v1alpha1.SyncStatusList{}
		for i := start; i < min(number, start+int(options.Limit)); i++ {
			list.Items = append(list.Items, *byName(fmt.Sprintf("catalog%03d-%05d", i%500, i)))
		}
		if next := start + len(list.Items); next < number {
			list.ListMeta = metav1.ListMeta{Continue: strconv.Itoa(next)}
		} else {
			atEnd()
		}
		return true, list, nil
	}
}

// byName returns the record with a name.
func byName(name string) *v1alpha1.SyncStatus {
	return record(name[:len(name)-6], name[len(name)-5:], 100)
}
